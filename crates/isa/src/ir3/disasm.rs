//! Text of ir3 instructions and shaders, equal to what Mesa's disassembler prints.

/// How a shader is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The GPU: 630, 730.
    pub gpu_id: u32,
    /// Branch targets as labels (`l12`, `fxn20`) and label lines; distances otherwise.
    pub labels: bool,
    /// Each line opens with `:category:index:cycle[raw words] `.
    pub raw: bool,
    /// Tabs before each line's raw words, and before the statistics.
    pub level: usize,
    /// Statistics lines follow the instructions.
    pub stats: bool,
}

/// Appends the text of one instruction (no newline). What is no instruction of this GPU is `raw 0x…`.
pub fn write(word: u64, gpu_id: u32, out: &mut Vec<u8>) {
    unimplemented!("{word}{gpu_id}{out:?}")
}

/// Appends the text of a shader, one instruction a line, up to its end.
pub fn disassemble(words: &[u64], listing: &Listing, out: &mut Vec<u8>) {
    unimplemented!("{words:?}{listing:?}{out:?}")
}
