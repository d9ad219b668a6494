//! SPIR-V that tests write word by word: types and constants, then the code of `void main()`. What identifiers and numbers mean is left to the test.

/// Appends an instruction.
pub fn op(out: &mut Vec<u32>, opcode: u32, words: &[u32]) {
    out.push((words.len() as u32 + 1) << 16 | opcode);
    out.extend(words);
}

/// A module with one compute shader, whose function has the identifier 1 and is not ended yet.
#[derive(Debug, Clone)]
pub struct Module {
    /// Decorations, types, constants and variables.
    pub types: Vec<u32>,
    /// From `OpFunction` on.
    pub code: Vec<u32>,
    /// The first identifier that is not used.
    pub bound: u32,
}

impl Module {
    /// An identifier that is not used.
    pub fn id(&mut self) -> u32 {
        self.bound += 1;
        self.bound - 1
    }

    /// The words of the module, with the variables of its interface and the size of its workgroups.
    pub fn words(&self, interface: &[u32], workgroup: [u32; 3]) -> Vec<u32> {
        let [x, y, z] = workgroup;
        let mut words = vec![0x0723_0203, 0x0001_0300, 0, self.bound, 0];
        op(&mut words, 17, &[1]);
        op(&mut words, 14, &[0, 1]);
        op(&mut words, 15, &[&[5, 1, u32::from_le_bytes(*b"main"), 0], interface].concat());
        op(&mut words, 16, &[1, 17, x, y, z]);
        words.extend(&self.types);
        words.extend(&self.code);
        op(&mut words, 56, &[]);
        words
    }
}
