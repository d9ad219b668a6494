//! Small shaders in the text form: what single passes make of them.
