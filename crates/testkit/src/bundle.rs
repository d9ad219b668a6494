//! Makes files that hold code objects, in the formats of clang's tools and of ar.

use flate2::write::ZlibEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::borrow::Cow;
use std::io::Write as _;
use unwedge_capture::elf::{
    CodeObject, ElfSection, ElfSectionKind, ElfSymbol, ElfSymbolKind, Loader, flags_of, write,
};

/// A code object with one function, which is only `s_endpgm`.
pub fn code_object(processor: &str) -> Vec<u8> {
    let code = 0xbf81_0000_u32.to_le_bytes().to_vec();
    let object = CodeObject {
        loader: Loader::Hsa(5),
        flags: flags_of(processor).expect("a processor"),
        sections: vec![ElfSection {
            name: Cow::Borrowed(".text"),
            kind: ElfSectionKind::Code,
            address: 0,
            bytes: Cow::Owned(code),
            align: 4,
        }],
        symbols: vec![ElfSymbol {
            name: Cow::Borrowed("main"),
            kind: ElfSymbolKind::Function,
            global: true,
            section: Some(0),
            value: 0,
            size: 4,
        }],
        relocations: Vec::new(),
        pointers: Vec::new(),
        diagnostics: Vec::new(),
    };
    write(&object).expect("an ELF file")
}

/// A bundle of entries: id and bytes, each at the next multiple of 8.
pub fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let table: usize = entries.iter().map(|(id, _)| 24 + id.len()).sum();
    let mut file = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    file.extend((entries.len() as u64).to_le_bytes());
    let mut contents: Vec<u8> = Vec::new();
    for (id, bytes) in entries {
        let start = (32 + table).next_multiple_of(8) + contents.len();
        for number in [start, bytes.len(), id.len()] {
            file.extend((number as u64).to_le_bytes());
        }
        file.extend(id.as_bytes());
        contents.extend(*bytes);
        contents.resize(contents.len().next_multiple_of(8), 0);
    }
    file.resize((32 + table).next_multiple_of(8), 0);
    file.extend(contents);
    file
}

/// A compressed bundle; method 0 is zlib, 1 is zstd.
pub fn compressed(bundle: &[u8], version: u16, method: u16) -> Vec<u8> {
    let packed = match method {
        0 => {
            let mut packer = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(bundle).expect("memory");
            packer.finish().expect("memory")
        }
        _ => compress_to_vec(bundle, CompressionLevel::Fastest),
    };
    let mut file = b"CCOB".to_vec();
    file.extend(version.to_le_bytes());
    file.extend(method.to_le_bytes());
    let (size, hash) = (bundle.len(), 0x0123_4567_89ab_cdef_u64);
    match version {
        1 => file.extend((size as u32).to_le_bytes()),
        2 => [24 + packed.len(), size].iter().for_each(|n| file.extend((*n as u32).to_le_bytes())),
        _ => [32 + packed.len(), size].iter().for_each(|n| file.extend((*n as u64).to_le_bytes())),
    }
    file.extend(hash.to_le_bytes());
    file.extend(packed);
    file
}

/// An offload binary of version 1 with one image.
pub fn offload_binary(triple: &str, arch: &str, image: &[u8]) -> Vec<u8> {
    let strings = format!("\0arch\0{arch}\0triple\0{triple}\0");
    let find = |text: &str| strings.find(&format!("\0{text}\0")).expect("a text") + 1;
    let (entry, table) = (32, 72);
    let texts = table + 32;
    let start = (texts + strings.len()).next_multiple_of(8);
    let size = (start + image.len()).next_multiple_of(8);
    let mut file = vec![0x10, 0xff, 0x10, 0xad];
    file.extend(1_u32.to_le_bytes());
    let mut put = |number: usize| file.extend((number as u64).to_le_bytes());
    [size, entry, 40].into_iter().for_each(&mut put);
    // The kinds of the image and of the offloading, and flags.
    put(1 | 1 << 16);
    [table, 2, start, image.len()].into_iter().for_each(&mut put);
    [find("arch"), find(arch), find("triple"), find(triple)].into_iter().for_each(|at| put(texts + at));
    file.extend(strings.as_bytes());
    file.resize(start, 0);
    file.extend(image);
    file.resize(size, 0);
    file
}

/// An ELF file of x86-64 with these sections.
pub fn host(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    file[16..20].copy_from_slice(&[1, 0, 62, 0]);
    let mut headers: Vec<[u64; 4]> = vec![[0; 4]];
    let mut names = b"\0".to_vec();
    let mut add = |name: &str, kind: u64, bytes: &[u8], file: &mut Vec<u8>| {
        file.resize(file.len().next_multiple_of(8), 0);
        let start = names.len() as u64;
        headers.push([start | kind << 32, file.len() as u64, bytes.len() as u64, 0]);
        names.extend(name.as_bytes());
        names.push(0);
        file.extend(bytes);
    };
    for (name, bytes) in sections {
        add(name, 1, bytes, &mut file);
    }
    add(".shstrtab", 3, &[], &mut file);
    let start = file.len() as u64;
    file.extend(&names);
    if let Some(last) = headers.last_mut() {
        (last[1], last[2]) = (start, names.len() as u64);
    }
    file.resize(file.len().next_multiple_of(8), 0);
    let table = file.len() as u64;
    for [kind, start, size, _] in &headers {
        for number in [*kind, 0, 0, *start, *size, 0, 1, 0] {
            file.extend(number.to_le_bytes());
        }
    }
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[52..54].copy_from_slice(&64_u16.to_le_bytes());
    file[58..60].copy_from_slice(&64_u16.to_le_bytes());
    file[60..62].copy_from_slice(&(headers.len() as u16).to_le_bytes());
    file[62..64].copy_from_slice(&(headers.len() as u16 - 1).to_le_bytes());
    file
}

/// A section's name as an object (which has a table of long ones) or a program of Windows (which cuts it) has it.
fn coff_name(name: &str, strings: Option<&mut Vec<u8>>) -> [u8; 8] {
    let mut field = [0; 8];
    let text = match strings {
        Some(strings) if name.len() > field.len() => {
            let at = strings.len();
            strings.extend(name.as_bytes());
            strings.push(0);
            format!("/{at}")
        }
        _ => name.to_owned(),
    };
    field.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
    field
}

/// An object (`program` is not set) or a program of Windows for x86-64 with these sections.
pub fn windows(sections: &[(&str, &[u8])], program: bool) -> Vec<u8> {
    let mut file = Vec::new();
    if program {
        file.extend(b"MZ");
        file.resize(0x80, 0);
        file[0x3c] = 0x80;
        file.extend(b"PE\0\0");
    }
    let optional = if program { 240 } else { 0 };
    let data = file.len() + 20 + optional + 40 * sections.len();
    let total: usize = sections.iter().map(|(_, bytes)| bytes.len()).sum();
    let symbols = if program { 0 } else { data + total };
    file.extend(0x8664_u16.to_le_bytes());
    file.extend((sections.len() as u16).to_le_bytes());
    for number in [0, symbols as u32, 0] {
        file.extend(number.to_le_bytes());
    }
    file.extend((optional as u16).to_le_bytes());
    file.extend(if program { 0x22_u16 } else { 0 }.to_le_bytes());
    file.resize(file.len() + optional, 0);
    let mut strings = vec![0; 4];
    let mut at = data;
    for (name, bytes) in sections {
        file.extend(coff_name(name, (!program).then_some(&mut strings)));
        let size = bytes.len() as u32;
        for number in [if program { size } else { 0 }, 0x1000, size, at as u32, 0, 0, 0, 0x4000_0040] {
            file.extend(number.to_le_bytes());
        }
        at += bytes.len();
    }
    sections.iter().for_each(|(_, bytes)| file.extend(*bytes));
    if !program {
        let size = strings.len() as u32;
        strings[..4].copy_from_slice(&size.to_le_bytes());
        file.extend(strings);
    }
    file
}

/// A thin archive of GNU's ar: names of files, without their contents.
pub fn thin_archive(members: &[&str]) -> Vec<u8> {
    let long: String = members.iter().map(|name| format!("{name}/\n")).collect();
    let mut file = b"!<thin>\n".to_vec();
    let header = |name: &str, size: usize| {
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).into_bytes()
    };
    file.extend(header("//", long.len()));
    file.extend(long.as_bytes());
    if file.len() % 2 == 1 {
        file.push(b'\n');
    }
    let mut place = 0;
    for name in members {
        file.extend(header(&format!("/{place}"), 1000));
        place += name.len() + 2;
    }
    file
}

/// A file of each format, one in another.
pub fn formats() -> Vec<(&'static str, Vec<u8>)> {
    let two = bundle(&[
        ("host-x86_64-unknown-linux--", &[]),
        ("hipv4-amdgcn-amd-amdhsa--gfx906", &code_object("gfx906")),
        ("hipv4-amdgcn-amd-amdhsa--gfx1030", &code_object("gfx1030")),
    ]);
    let binary = offload_binary("amdgcn-amd-amdhsa", "gfx90a", &code_object("gfx90a"));
    let elf = host(&[(".text", b"code"), (".hip_fatbin", &two), (".llvm.offloading", &binary)]);
    let program =
        windows(&[(".text", b"code"), (".hipFatBinSegment", &[0; 24]), (".hip_fatbin", &two)], true);
    let object = windows(&[(".text", b"code"), (".hipFatBinSegment", &two)], false);
    let long = "a_name_that_is_longer_than_the_header_has.obj";
    vec![
        ("compressed", compressed(&two, 3, 1)),
        ("archive", archive(&[("fat.o", &elf), (long, &object), ("program.exe", &program)])),
        ("microsoft-archive", archive_of(&[("fat.obj", &object), (long, &object)], true)),
        ("thin", thin_archive(&["fat.o", "plain.o"])),
        ("elf", elf),
        ("program", program),
        ("object", object),
        ("offload-binary", binary),
        ("bundle", two),
    ]
}

/// An archive as GNU's ar writes it, with an empty symbol table.
pub fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    archive_of(members, false)
}

/// An archive of GNU's ar, or of Microsoft's, which has two symbol tables and ends long names with a zero.
fn archive_of(members: &[(&str, &[u8])], microsoft: bool) -> Vec<u8> {
    let mut file = b"!<arch>\n".to_vec();
    let member = |name: &str, bytes: &[u8], file: &mut Vec<u8>| {
        let size = bytes.len();
        file.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).into_bytes());
        file.extend(bytes);
        if file.len() % 2 == 1 {
            file.push(b'\n');
        }
    };
    member("/", &[0; 4], &mut file);
    if microsoft {
        member("/", &[0; 8], &mut file);
    }
    let mut long = String::new();
    let mut names = Vec::new();
    for (name, _) in members {
        if name.len() < 16 {
            names.push(format!("{name}/"));
        } else {
            names.push(format!("/{}", long.len()));
            long.push_str(&if microsoft { format!("{name}\0") } else { format!("{name}/\n") });
        }
    }
    member("//", long.as_bytes(), &mut file);
    for ((_, bytes), name) in members.iter().zip(&names) {
        member(name, bytes, &mut file);
    }
    file
}
