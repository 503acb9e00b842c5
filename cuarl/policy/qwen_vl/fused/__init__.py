"""Element-wise parts of a decoder layer as single kernels: ``ops`` is the seam, ``kernels`` what runs on a GPU."""
