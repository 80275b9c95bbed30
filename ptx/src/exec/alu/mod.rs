//! Lane instructions: an opcode with its types to a function over 32 lanes.
