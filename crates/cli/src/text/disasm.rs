//! Where the listings show shaders.

use super::Text;
use unwedge_base::{Dwords, Generation};

/// What kind of code to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shader {
    /// ir3 (a3xx on).
    Ir3,
    /// a2xx vertex code.
    Ir2Vertex,
    /// a2xx fragment code.
    Ir2Fragment,
}

/// Shows a shader. The instruction sets are not part of this version, so nothing is printed; every place where the
/// listings show instructions calls this.
pub fn disassemble(
    _text: &mut Text<'_>,
    _code: Dwords<'_>,
    _shader: Shader,
    _generation: Generation,
    _level: usize,
) {
}
