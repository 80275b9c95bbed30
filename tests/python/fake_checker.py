"""A checker that believes what a test tells it, with the native library's request and answer."""

from triton.bitstable.tuning import checking


class Fails(str):
    """A label that is an error."""


class Checker:
    """Puts kernels of one group and one label into one class.

    `label` gets a kernel of the request; what it returns is hashable, or `Fails("why")`.
    """

    def __init__(self, label):
        self.label = label
        self.requests = []
        #: By label, to be added to its class: `obstacle`, `contractions`.
        self.extra = {}
        self.difference = "a[0] is computed otherwise"
        self.edit = lambda answer: None

    def __call__(self, request):
        self.requests.append(request)
        found, errors = {}, []
        for number, kernel in enumerate(request["kernels"]):
            label = self.label(kernel)
            if isinstance(label, Fails):
                errors.append({"kernel": number, "file": kernel["name"], "error": str(label)})
            else:
                found.setdefault((kernel["group"], label), []).append(number)
        classes = [
            {"signature": f"{at:032x}", "kernels": members, **self.extra.get(label, {})}
            for at, ((_, label), members) in enumerate(found.items())
        ]
        differences = [
            {"classes": [0, at], "verdict": "different", "outputs": [{"text": self.difference}]}
            for at in range(1, min(len(classes), request["explain"] + 1))
        ]
        answer = {"classes": classes, "errors": errors, "differences": differences}
        self.edit(answer)
        return answer

    @property
    def kernels(self):
        """What was asked about last."""
        return self.requests[-1]["kernels"]


def install(monkeypatch, label):
    """Let `same_bits` ask a fake."""
    checker = Checker(label)
    monkeypatch.setattr(checking, "request_native", checker)
    return checker
