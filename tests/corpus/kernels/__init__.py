"""The kernels of the corpus, by kind; every one takes its order as the constexpr `ORDER`."""
