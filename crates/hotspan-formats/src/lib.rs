//! Wire and file formats, to and from the model. No I/O: bytes in, model out, and back.
