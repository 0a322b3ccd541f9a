"""The only folder that imports dagster: assets, checks, jobs, schedules, sensors, resources, partitions."""
