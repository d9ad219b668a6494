//! Code objects that name their GPU, that are of HSA v2, or that are several in a file, as a shell sees them.

mod program;

use program::{Folder, text, unwedge};
use unwedge_testkit::bundle::{bundle, code_object, compressed, host, thin_archive};

fn good(args: &[&str], input: &[u8]) -> Vec<u8> {
    let output = unwedge(args, input);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    output.stdout
}

/// What a command complains of, and its exit status.
fn refused(args: &[&str], input: &[u8]) -> (Option<i32>, String) {
    let output = unwedge(args, input);
    (output.status.code(), text(&output.stderr))
}

const ASM: [&str; 3] = ["amd", "asm", "-"];
const DISASM: [&str; 3] = ["amd", "disasm", "-"];

/// Two kernels of HSA v2: the first with fields by both of their names, the second with none.
const SOURCE: &str = "\
.hsa_code_object_version 2,1
.hsa_code_object_isa 8,0,3,\"AMD\",\"AMDGPU\"
.text
.p2align 8
.globl first
.amdgpu_hsa_kernel first
first:
.amd_kernel_code_t
  enable_sgpr_kernarg_segment_ptr = 1
  compute_pgm_rsrc2_user_sgpr = 2
  kernarg_segment_byte_size = 8 * 2
  wavefront_sgpr_count = 16
  granulated_workitem_vgpr_count = 1
.end_amd_kernel_code_t
  s_load_dwordx2 s[0:1], s[0:1], 0x0
  s_endpgm
.p2align 8
.globl second
.amdgpu_hsa_kernel second
second:
.amd_kernel_code_t
.end_amd_kernel_code_t
  s_endpgm
.amd_amdgpu_hsa_metadata
Version: [ 1, 0 ]
Kernels:
  - Name: first
.end_amd_amdgpu_hsa_metadata
";

#[test]
fn headers_of_hsa_v2_are_shown_and_assemble_again() {
    let object = good(&ASM, SOURCE.as_bytes());
    // Version 0 of the ABI of HSA, and gfx803 alone in the flags.
    assert_eq!((object[7], object[8], &object[48..52]), (64, 0, &[0x2a, 0, 0, 0][..]));
    let listing = text(&good(&DISASM, &object));
    for expected in [
        "\t.hsa_code_object_version 2,1\n\t.hsa_code_object_isa 8,0,3,\"AMD\",\"AMDGPU\"\n",
        "\t.amdgpu_hsa_kernel first\nfirst:\n\t.amd_kernel_code_t\n\t\tamd_code_version_major = 1\n",
        "\t\tuser_sgpr_count = 2\n",
        "\t\tkernarg_segment_byte_size = 16\n",
        "\t\tcall_convention = -1\n",
        "\t.end_amd_kernel_code_t\n\ts_load_dwordx2",
        "\t.amdgpu_hsa_kernel second\nsecond:\n\t.amd_kernel_code_t\n",
        "\t.amd_amdgpu_hsa_metadata\nVersion: [ 1, 0 ]\nKernels:\n  - Name: first\n\t.end_amd_amdgpu_hsa_metadata\n",
    ] {
        assert!(listing.contains(expected), "{expected} in\n{listing}");
    }
    let again = good(&ASM, listing.as_bytes());
    assert_eq!(text(&good(&DISASM, &again)), listing);
    let raw = ["amd", "asm", "--emit", "raw", "-"];
    assert_eq!(good(&raw, SOURCE.as_bytes()), good(&raw, listing.as_bytes()));
}

/// Bits that no field has are kept as data.
#[test]
fn headers_with_other_bits_are_data() {
    let object = good(&ASM, SOURCE.as_bytes());
    let start = object.windows(8).position(|bytes| bytes == [1, 0, 0, 0, 2, 0, 0, 0]).expect("a header");
    // The size of backing memory, which no assembler reads.
    let mut changed = object.clone();
    changed[start + 40] = 7;
    let listing = text(&good(&DISASM, &changed));
    assert!(listing.contains("\t// \tuser_sgpr_count = 2\n"), "{listing}");
    assert!(listing.contains("\t.long 0x00000000, 0x00000000, 0x00000007, 0x00000000\n"), "{listing}");
    let raw = |source: &str| good(&["amd", "asm", "--emit", "raw", "-"], source.as_bytes());
    let (expected, made) = (raw(SOURCE), raw(&listing));
    let different: Vec<_> = expected.iter().zip(&made).filter(|(a, b)| a != b).collect();
    assert_eq!((made.len(), different), (expected.len(), vec![(&0, &7)]));
}

#[test]
fn wrong_headers_name_their_line() {
    for (wrong, expected) in [
        ("nothing = 1", ":9:3: no such field in amd_kernel_code_t"),
        ("is_ptr64 = 2", ":9:3: 2 does not fit this field"),
        ("enable_wgp_mode = 1", ":9:3: only GPUs from gfx10 on have that"),
        ("s_endpgm", ":9:3: expected a field, = and a value"),
    ] {
        let source = SOURCE.replace("enable_sgpr_kernarg_segment_ptr = 1", wrong);
        let (code, said) = refused(&ASM, source.as_bytes());
        assert!(code == Some(1) && said.contains(expected), "{wrong}: {said}");
    }
    let open = SOURCE.replace(".end_amd_kernel_code_t\n", "");
    assert!(refused(&ASM, open.as_bytes()).1.contains(".end_amd_kernel_code_t"));
    let other = SOURCE.replace("8,0,3", "9,0,0");
    let (code, said) = refused(&["amd", "asm", "--gpu", "gfx803", "-"], other.as_bytes());
    assert!(code == Some(1) && said.contains("this file is for gfx900, not for gfx803"), "{said}");
}

/// A header has the registers that are set, as a descriptor does.
#[test]
fn kernels_of_hsa_v2_are_checked_and_run() {
    let object = good(&ASM, SOURCE.as_bytes());
    assert_eq!(text(&good(&["amd", "check", "-"], &object)), "");
    let ran = text(&good(&["amd", "run", "-"], &object));
    assert!(ran.contains("gfx803: 2 instructions") && ran.contains("0 faults"), "{ran}");
    let unset = SOURCE.replace("compute_pgm_rsrc2_user_sgpr = 2", "compute_pgm_rsrc2_user_sgpr = 0");
    let output = unwedge(&["amd", "check", "-"], &good(&ASM, unset.as_bytes()));
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("error[unwritten]"), "{}", text(&output.stdout));
}

/// A listing assembles without options for its GPU and its loader.
#[test]
fn a_listing_names_its_gpu() {
    for (gpu, loader, named) in [
        (
            "gfx1030",
            "hsa-v4",
            "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx1030\"\n\t.amdhsa_code_object_version 4\n",
        ),
        ("gfx900", "pal", "\t.amdgcn_target \"amdgcn-amd-amdpal--gfx900\"\n"),
        ("gfx1100", "mesa", "\t.amdgcn_target \"amdgcn-mesa-mesa3d--gfx1100\"\n"),
    ] {
        let object = good(&["amd", "asm", "--gpu", gpu, "--loader", loader, "-"], b"main:\ns_endpgm\n");
        let listing = text(&good(&DISASM, &object));
        assert!(listing.starts_with(named), "{listing}");
        assert_eq!(text(&good(&DISASM, &good(&ASM, listing.as_bytes()))), listing);
        assert_eq!(text(&good(&["amd", "check", "-"], listing.as_bytes())), "");
    }
    let modes = "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx906:sramecc-:xnack+\"\n";
    let object = good(&ASM, format!("{modes}s_endpgm\n").as_bytes());
    assert!(text(&good(&DISASM, &object)).starts_with(modes));
    assert!(refused(&ASM, b"s_endpgm\n").1.contains("which GPU?"));
}

const IDS: [&str; 3] = [
    "hipv4-amdgcn-amd-amdhsa--gfx900:xnack+",
    "hipv4-amdgcn-amd-amdhsa--gfx900:xnack-",
    "hipv4-amdgcn-amd-amdhsa--gfx1030",
];

fn three() -> Vec<u8> {
    let objects = ["gfx900", "gfx900", "gfx1030"].map(code_object);
    bundle(&[(IDS[0], &objects[0]), (IDS[1], &objects[1]), (IDS[2], &objects[2])])
}

#[test]
fn a_code_object_of_several_is_chosen() {
    for file in [three(), compressed(&three(), 2, 1), host(&[(".hip_fatbin", &three())])] {
        let listing = text(&good(&["amd", "disasm", "--gpu", "gfx1030", "-"], &file));
        assert!(listing.contains("gfx1030") && listing.contains("s_endpgm"), "{listing}");
        let listing = text(&good(&["amd", "disasm", "--object", "1", "-"], &file));
        assert!(listing.contains("gfx900") && listing.contains("s_endpgm"), "{listing}");
        assert_eq!(text(&good(&["amd", "check", "--object", "2", "-"], &file)), "");
        good(&["amd", "run", "--object", "0", "-"], &file);
        for (args, expected) in [
            (&["amd", "disasm", "-"][..], "several code objects: choose one with --gpu or --object"),
            (&["amd", "check", "--gpu", "gfx900", "-"], "several code objects for gfx900"),
            (&["amd", "run", "--gpu", "gfx1100", "-"], "no code object for gfx1100"),
            (&["amd", "disasm", "--object", "3", "-"], "no code object 3"),
        ] {
            let (code, said) = refused(args, &file);
            assert!(code != Some(0) && said.contains(expected) && said.contains(IDS[1]), "{args:?}: {said}");
        }
    }
    let (code, said) = refused(&["amd", "disasm", "--object", "0", "-"], &code_object("gfx900"));
    assert!(code == Some(2) && said.contains("--object is for files that hold several"), "{said}");
}

#[test]
fn info_lists_code_objects() {
    let listed = text(&good(&["info", "-"], &compressed(&three(), 3, 0)));
    for expected in ["a bundle of code objects", "gfx900", IDS[2], ", compressed"] {
        assert!(listed.contains(expected), "{expected} in\n{listed}");
    }
    let json = text(&good(&["info", "--json", "-"], &host(&[(".hip_fatbin", &three())])));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let objects = json["objects"].as_array().expect("objects");
    let numbers: Vec<_> = objects.iter().map(|object| object["number"].as_u64()).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
    assert_eq!(objects[2]["path"], serde_json::json!([".hip_fatbin", IDS[2]]));
    assert_eq!(objects[2]["processor"], "gfx1030");
    let single = text(&good(&["info", "-"], &code_object("gfx906")));
    assert!(single.contains("gfx906") && single.contains("hsa-v5"), "{single}");
    // Something is lost, and what is there is listed.
    let (code, said) = refused(&["info", "-"], &three()[..three().len() - 4]);
    assert!(code == Some(3) && said.contains("of its"), "{said}");
}

/// A thin archive names files, which are read where they are beside it, and nowhere else.
#[test]
fn thin_archives_have_the_files_beside_them() {
    let folder = Folder::of(&[
        ("lib/one.o", code_object("gfx906")),
        ("lib/sub/two.o", code_object("gfx90a")),
        ("outside.o", code_object("gfx1030")),
        ("lib/all.a", thin_archive(&["one.o", "sub/two.o"])),
        ("lib/some.a", thin_archive(&["one.o", "gone.o", "../outside.o"])),
        ("lib/none.a", thin_archive(&["gone.o"])),
    ]);
    let path = |name: &str| folder.path(name);
    let listed = text(&good(&["info", &path("lib/all.a")], &[]));
    assert!(listed.contains("gfx906") && listed.contains("sub/two.o"), "{listed}");
    let listing = text(&good(&["amd", "disasm", "--gpu", "gfx90a", &path("lib/all.a")], &[]));
    assert!(listing.contains("gfx90a") && listing.contains("s_endpgm"), "{listing}");
    good(&["amd", "check", "--object", "0", &path("lib/all.a")], &[]);
    let some = unwedge(&["info", &path("lib/some.a")], &[]);
    let (listed, said) = (text(&some.stdout), text(&some.stderr));
    assert!(listed.contains("gfx906") && !listed.contains("gfx1030"), "{listed}");
    for name in ["gone.o", "../outside.o"] {
        assert!(said.contains(&format!("{name}, which the thin archive names, cannot be read")), "{said}");
    }
    assert_eq!(some.status.code(), Some(3));
    let none = unwedge(&["info", &path("lib/none.a")], &[]);
    let (listed, said) = (text(&none.stdout), text(&none.stderr));
    assert!(listed.contains("none for an AMD GPU") && said.contains("names 1, to be read"), "{listed}{said}");
    // Links may lead elsewhere, and a pipe never ends.
    #[cfg(unix)]
    {
        for (from, to) in [("../outside.o", "lib/link.o"), ("..", "lib/up")] {
            std::os::unix::fs::symlink(from, path(to)).expect("a link is made");
        }
        let made = std::process::Command::new("mkfifo").arg(path("lib/pipe.o")).status();
        assert!(made.is_ok_and(|status| status.success()), "a pipe is made");
        let names = ["link.o", "up/outside.o", "pipe.o"];
        std::fs::write(path("lib/links.a"), thin_archive(&[&["one.o"][..], &names].concat()))
            .expect("written");
        let links = unwedge(&["info", &path("lib/links.a")], &[]);
        let (listed, said) = (text(&links.stdout), text(&links.stderr));
        assert!(listed.contains("gfx906") && !listed.contains("gfx1030"), "{listed}");
        for name in names {
            assert!(
                said.contains(&format!("{name}, which the thin archive names, cannot be read")),
                "{said}"
            );
        }
    }
    // Of standard input nothing is beside it.
    let (code, said) = refused(&["info", "-"], &thin_archive(&["one.o"]));
    assert!(code == Some(3) && said.contains("a thin archive holds no files"), "{said}");
}
