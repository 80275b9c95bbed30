"""A native library that records launches instead of running them, for tests of the Python side."""

import re
import threading

_PARAM = re.compile(r"\.param (?:\.align (\d+) )?\.[usfb](\d+)[^,\n]*?(?:\[(\d+)\])?,?\n")


class Recorder:
    """Takes the place of `_native.Library`; `during` runs in each launch, with the request."""

    def __init__(self, during=None):
        self.during = during
        self.launches = []
        self.loaded = []
        self.unloaded = []
        self.findings = []

    def ptx_load(self, ptx, options):
        self.loaded.append(options["entry"])
        head = ptx.decode().split(".visible .entry", 1)[1].split(")", 1)[0]
        params, at = [], 0
        for align, bits, count in _PARAM.findall(head):
            size = int(bits) // 8 * int(count or 1)
            at += -at % int(align or size)
            params.append({"name": f"p{len(params)}", "offset": at, "bytes": size})
            at += size
        return {"handle": len(self.loaded), "params": params, "param_bytes": at}

    def ptx_unload(self, handle):
        self.unloaded.append(handle)

    def ptx_launch(self, handle, request, params, cancel):
        launch = {"handle": handle, "params": params, "thread": threading.current_thread()}
        self.launches.append(request | launch)
        if self.during is not None:
            self.during(request, params, cancel)
        return {"findings": self.findings, "printed": [], "statistics": {}}
