//! Line tables of DWARF, as compilers write them with `-g`.

/// A row of a line table: address, line, column.
pub type DwarfRow = (u64, u8, u8);

/// The `.debug_line` of one unit of DWARF 5 that is compiled from `folder/file`, and the offset of its first address in it. The code
/// ends at `end`.
pub fn debug_line(folder: &str, file: &str, rows: &[DwarfRow], end: u64) -> (Vec<u8>, usize) {
    const PATH: u8 = 1;
    const DIRECTORY: u8 = 2;
    const STRING: u8 = 8;
    const UDATA: u8 = 0xf;
    // Bytes of an instruction, operations of one, is_stmt, line base and range, opcodes and their operands.
    let mut header = vec![4, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    // Two folders: where the compiler ran, and that of the file.
    header.extend([1, PATH, STRING, 2]);
    header.extend([b"/build\0", folder.as_bytes(), b"\0"].concat());
    header.extend([2, PATH, STRING, DIRECTORY, UDATA, 1]);
    header.extend([file.as_bytes(), b"\0", &[1]].concat());
    let set_address = |address: u64| [&[0, 9, 2][..], &address.to_le_bytes()].concat();
    let mut program = vec![4, 0];
    let mut line = 1i16;
    for (i, &(address, at, column)) in rows.iter().enumerate() {
        if i == 0 {
            program.extend(set_address(address));
        } else {
            // As a distance from the row before, in instructions.
            let distance = address.saturating_sub(rows[i - 1].0) / 4;
            program.extend([2, u8::try_from(distance.min(127)).unwrap_or(127)]);
        }
        // Bytes below 64 are numbers of DWARF as they are; the others need a second one.
        let delta = i16::from(at) - line;
        program.extend([3, (delta & 0x7f) as u8 | 0x80, (delta >> 7 & 0x7f) as u8, 5, column & 0x7f, 1]);
        line = i16::from(at);
    }
    let last = rows.last().map_or(0, |row| row.0);
    program.extend([2, u8::try_from((end.saturating_sub(last) / 4).min(127)).unwrap_or(127), 0, 1, 1]);
    let mut unit = vec![5, 0, 8, 0];
    unit.extend((header.len() as u32).to_le_bytes());
    // The file is number 0, and DW_LNS_set_file and the start of DW_LNE_set_address are before the address.
    let first = 4 + unit.len() + header.len() + 2 + 3;
    unit.extend(header);
    unit.extend(program);
    ([&(unit.len() as u32).to_le_bytes()[..], &unit].concat(), first)
}
