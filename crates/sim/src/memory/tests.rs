use super::*;
use std::collections::HashMap;

#[test]
fn what_is_not_mapped_is_not_there() {
    let mut memory = SimMemory::default();
    memory.map(0x1ffe, vec![1, 2, 3, 4]).unwrap();
    assert_eq!(memory.map(0x2001, vec![0]), Err(MapError::Overlap(0x2001)));
    assert_eq!(memory.map(u64::MAX, vec![0, 0]), Err(MapError::Beyond(u64::MAX)));
    let mut view = GroupView::new(&memory);
    assert_eq!(view.read(0x1ffe, 4), Load::Known(0x0403_0201));
    assert_eq!(view.read(0x1ffd, 2), Load::Unmapped);
    assert!(!view.write(0x2001, 2, 0));
    assert!(view.write(0x1fff, 2, 0xbbaa));
    let written = view.written();
    let mut lines = HashMap::new();
    memory.commit(&written, &mut lines);
    assert_eq!(memory.get(0x1ffe, 4), Some(&[1, 0xaa, 0xbb, 4][..]));
    assert!(written.read_any_of(&lines));
}

/// What is written past the stored bytes of a region is found by page, and commits put whole runs of bytes there, too.
#[test]
fn bytes_past_those_that_are_stored() {
    let mut memory = SimMemory::default();
    memory.map_zero_filled(0x1000, 0x4000, vec![7; 0x10]).unwrap();
    assert_eq!((memory.stored_at(0x100c).len(), memory.stored_at(0x1010).len()), (4, 0));
    assert!(memory.store(0x100e, 4, 0x4433_2211), "half of it is stored");
    assert!(memory.store(0x2ffc, 8, 0x8877_6655_4433_2211), "in two pages");
    assert!(!memory.store(0x4ffd, 4, 1), "its end is not mapped");
    assert_eq!(memory.written_between(0x1000, 0x4fff).collect::<Vec<_>>(), [0x1000, 0x2000, 0x3000]);
    assert_eq!(memory.written_between(0x1800, 0x1fff).collect::<Vec<_>>(), [0x1000]);
    let loads = [(0x100c, 4), (0x1010, 4), (0x2ffe, 4), (0x3000, 8), (0x4ffe, 4)];
    let expected = [Some(0x2211_0707), Some(0x4433), Some(0x6655_4433), Some(0x8877_6655), None];
    assert_eq!(loads.map(|(at, size)| memory.load(at, size).known()), expected);
    let mut near = NearRegion::default();
    assert_eq!(memory.load_near(&mut near, 0x1004, 4).known(), Some(0x0707_0707));
    assert!(memory.store_near(near, 0x1004, 4, 0xaa));
    assert!(!memory.store_near(near, 0x2000, 2, 0xbb), "past the stored bytes");
    assert!(memory.store(0x2000, 2, 0xbb));
    assert_eq!(memory.bounds(near), Some((0x1000, 0x4fff)));
    assert_eq!([0x1004, 0x2000].map(|at| memory.load_near(&mut near, at, 4)), [0xaa, 0xbb].map(Load::Known));
    let mut view = GroupView::new(&memory);
    assert_eq!([0x2000, 0x1010, 0x1100].map(|at| view.read(at, 2)), [0xbb, 0x4433, 0].map(Load::Known));
    assert!(view.write(0x100a, 8, u64::MAX) && view.write(0x4000, 3, 0x12_3456));
    let written = view.written();
    memory.commit(&written, &mut HashMap::new());
    let loads = [(0x1008, 2), (0x100a, 8), (0x1012, 2), (0x4000, 4)];
    let expected = [0x0707, u64::MAX, 0, 0x12_3456].map(Load::Known);
    assert_eq!(loads.map(|(at, size)| memory.load(at, size)), expected);
}

fn check_known_bytes(memory: &SimMemory, first: u64, size: usize) {
    let one_by_one = (first..).take(size).map(|at| memory.load(at, 1).known().map(|byte| byte as u8));
    assert_eq!(memory.known_bytes(first, size), one_by_one.collect::<Vec<_>>());
}

/// Bytes of ranges are given out apart from each other, those past the stored ones with what they hold.
#[test]
fn parts_of_memory() {
    let mut memory = SimMemory::default();
    memory.map_zero_filled(0x1000, 0x4000, vec![7; 0x10]).unwrap();
    memory.map_unknown(0x8000, 0x1000).unwrap();
    assert!(memory.store(0x1ffe, 4, 0x4433_2211));
    assert!(memory.stored_parts(&[(0x1000, 0x2000)]).is_none(), "they are not stored");
    assert!(!memory.store_range(0x1000, 0x2000, 0xfef), "they are too many");
    assert!(memory.store_range(0x1000, 0x2000, 0xff0));
    assert!(memory.store_range(0x1000, 0x2000, 0) && memory.store_range(0x1800, 0x1900, 0));
    assert!(!memory.store_range(0x4000, 0x5001, 0x10_0000), "not all are mapped");
    assert!(!memory.store_range(0x8000, 0x9000, 0x10_0000), "they are unknown");
    assert_eq!(memory.written_between(0x1000, 0x4fff).collect::<Vec<_>>(), [0x2000]);
    let loads = [(0x100e, 4), (0x1ffe, 4), (0x2000, 2), (0x3000, 4)];
    let expected = [0x0707, 0x4433_2211, 0x4433, 0].map(Load::Known);
    assert_eq!(loads.map(|(at, size)| memory.load(at, size)), expected);
    assert!(memory.store_range(0x1800, 0x3000, 0x1000));
    memory.map(0x5000, vec![9; 8]).unwrap();
    assert!(memory.store(0x4ffe, 4, 0x0909_0000) && memory.store(0x8ff0, 4, 5));
    for (first, size) in [(0xff0, 0x9000), (0x2fff, 2), (0x5007, 2), (0x8ff1, 0x10), (0x7000, 0)] {
        check_known_bytes(&memory, first, size);
    }
    let ranges = [(0x1004, 0x1008), (0x1008, 0x1010), (0x1ffe, 0x2002), (0x5000, 0x5008)];
    let parts = memory.stored_parts(&ranges).unwrap();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [4, 8, 4, 8]);
    assert_eq!(parts[2], [0x11, 0x22, 0x33, 0x44]);
    parts.into_iter().for_each(|part| part.fill(1));
    assert_eq!(memory.load(0x1002, 4), Load::Known(0x0101_0707));
    assert_eq!(memory.load(0x4ffe, 4), Load::Known(0x0101_0000));
    assert!(memory.stored_parts(&[(0x2ffe, 0x3002)]).is_none());
    memory.log_writes();
    assert!(memory.stored_parts(&[(0x1000, 0x1004)]).is_none(), "writes are taken down");
}

/// Memory of one value is stored where it is written, and reads the same everywhere.
#[test]
fn memory_of_one_value() {
    let mut memory = SimMemory::default();
    memory.map_filled(0x10_0000, 0x4_0000, 0xd5).unwrap();
    assert_eq!(memory.load(0x13_fffc, 4), Load::Known(0xd5d5_d5d5));
    assert!(memory.stored_at(0x10_0000).is_empty());
    assert!(memory.store(0x10_0ffe, 4, 0x4433_2211));
    assert_eq!((memory.stored_at(0x10_0000).len(), memory.written_pages()), (0x1_0000, 0));
    check_known_bytes(&memory, 0x0f_fff0, 0x1_1000);
    let loads = [(0x10_0ffc, 8), (0x10_fffc, 8), (0x13_fffc, 8)];
    let expected = [Load::Known(0xd5d5_4433_2211_d5d5), Load::Known(0xd5d5_d5d5_d5d5_d5d5), Load::Unmapped];
    assert_eq!(loads.map(|(at, size)| memory.load(at, size)), expected);
    let mut view = GroupView::new(&memory);
    assert_eq!(view.read(0x12_0000, 4), Load::Known(0xd5d5_d5d5));
    assert!(view.write(0x12_0001, 2, 0) && view.write(0x13_fffe, 2, 0));
    let written = view.written();
    memory.commit(&written, &mut HashMap::new());
    assert_eq!((memory.stored_at(0x10_0000).len(), memory.written_pages()), (0x4_0000, 0));
    assert_eq!(memory.load(0x12_0000, 4), Load::Known(0xd500_00d5));
    memory.unmap(0x11_0000, 0x1000);
    let loads = [(0x11_0fff, 1), (0x11_1000, 4), (0x13_fffc, 4)].map(|(at, size)| memory.load(at, size));
    assert_eq!(loads, [Load::Unmapped, Load::Known(0xd5d5_d5d5), Load::Known(0x0000_d5d5)]);
}

#[test]
fn bytes_are_undefined_until_they_are_written() {
    let mut memory = SimMemory::default();
    memory.map(0xff0, vec![7; 0x1020]).unwrap();
    memory.set_undefined(0xff8, 0x1010);
    assert_eq!(memory.load(0xff8, 4), Load::Known(0x0707_0707));
    assert!(!memory.is_undefined(0xff0, 8) && memory.is_undefined(0xff0, 9));
    assert!(memory.store(0xffe, 4, 1));
    assert!(
        !memory.is_undefined(0xffe, 4) && memory.is_undefined(0xffd, 1) && memory.is_undefined(0x1002, 1)
    );
    let mut near = NearRegion::default();
    assert_eq!(memory.load_near(&mut near, 0x1800, 1), Load::Known(7));
    assert!(!memory.store_near(near, 0x1800, 1, 0), "writes are tracked");
    memory.unmap(0x1000, 0x1000);
    assert!(!memory.is_undefined(0x1002, 8) && memory.is_undefined(0x2000, 1));
}

/// A capture may know that memory is there and not what it holds: a write makes it known, byte by byte.
#[test]
fn unknown_memory_is_not_unmapped_memory() {
    let mut memory = SimMemory::default();
    memory.map_unknown(0x1000, 0x100).unwrap();
    assert_eq!(memory.load(0x1000, 4), Load::Unknown);
    assert_eq!(memory.load(0x10fe, 4), Load::Unmapped);
    let mut view = GroupView::new(&memory);
    assert_eq!(view.read(0x1000, 4), Load::Unknown);
    assert!(view.write(0x1002, 2, 0xbbaa));
    assert_eq!(view.read(0x1000, 4), Load::Unknown);
    assert_eq!(view.read(0x1002, 2), Load::Known(0xbbaa));
    assert!(!view.write(0x10ff, 2, 0));
    assert_eq!(view.read(0x10fe, 4), Load::Unmapped);
    let written = view.written();
    memory.commit(&written, &mut HashMap::new());
    assert_eq!(memory.load(0x1002, 2), Load::Known(0xbbaa));
    assert_eq!(memory.load(0x1001, 2), Load::Unknown);
    assert_eq!(SimMemory::unknown().load(u64::MAX - 7, 8), Load::Unknown);
    assert_eq!(SimMemory::unknown().load(u64::MAX, 2), Load::Unmapped);
}

#[test]
fn memory_of_a_capture() {
    let buffer = |iova, size, contents: Option<Vec<u32>>| unwedge_base::Buffer {
        iova,
        size,
        contents,
        name: String::new(),
    };
    let held: unwedge_base::Memory = [
        buffer(0x1000, 16, Some(vec![1, 2])),
        buffer(0x1010, 16, None),
        // Answers for its own bytes, as it starts nearer below them.
        buffer(0x1004, 4, Some(vec![9])),
    ]
    .into_iter()
    .collect();
    let memory = SimMemory::from(&held);
    let words = [0x1000, 0x1004, 0x1008, 0x100c, 0x1010, 0x1020].map(|at| memory.load(at, 4));
    assert_eq!(
        words,
        [
            Load::Known(1),
            Load::Known(9),
            // Zeros at the end of a buffer's contents are left out.
            Load::Known(0),
            Load::Known(0),
            Load::Unknown,
            Load::Unmapped,
        ]
    );
    // A write past the stored content of a buffer.
    let mut memory = memory;
    assert!(memory.store(0x100c, 4, 5));
    assert_eq!((memory.load(0x1008, 4), memory.load(0x100c, 4)), (Load::Known(0), Load::Known(5)));
}
