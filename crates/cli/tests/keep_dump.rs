//! The script of `contrib/` that keeps devcoredumps, on a folder that stands for that of the kernel.

mod program;

use program::{run, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use unwedge_testkit::devcore::DevcoreBuilder;

/// A folder with one dump, `devcd1`.
struct Class(PathBuf);

impl Class {
    fn new(test: &str, dump: &[u8]) -> Class {
        let folder = std::env::temp_dir().join(format!("unwedge-keep-{test}-{}", std::process::id()));
        fs::create_dir_all(folder.join("class/devcd1")).unwrap();
        fs::write(folder.join("class/devcd1/data"), dump).unwrap();
        Class(folder)
    }

    fn keep(&self, node: &str) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/keep-gpu-dump");
        let mut command = Command::new("sh");
        command.arg(script).arg(node);
        command.env("DEVCOREDUMP_CLASS", self.0.join("class")).env("GPU_DUMPS", self.0.join("kept"));
        run(&mut command, b"")
    }

    fn kept(&self) -> Vec<PathBuf> {
        fs::read_dir(self.0.join("kept")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    fn data(&self) -> Vec<u8> {
        fs::read(self.0.join("class/devcd1/data")).unwrap()
    }
}

impl Drop for Class {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_dump_of_a_gpu_is_kept_whole_for_its_owner_alone_and_dismissed() {
    let class = Class::new("msm", &DevcoreBuilder::a6xx().text());
    let output = class.keep("devcd1");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let kept = class.kept();
    let [file] = &kept[..] else { panic!("{kept:?}") };
    assert!(file.to_string_lossy().ends_with("-msm-devcd1.devcore.gz"), "{file:?}");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let info = program::unwedge(&["info", "--json", &file.to_string_lossy()], b"");
    assert_eq!(info.status.code(), Some(0), "{}", text(&info.stderr));
    assert_eq!(class.data(), b"1\n");
}

#[test]
fn dumps_of_other_drivers_are_left_alone() {
    let class = Class::new("wireless", b"ATH10K-FW-DUMP\0\0\x01\0");
    assert_eq!(class.keep("devcd1").status.code(), Some(0));
    assert!(class.kept().is_empty());
    assert_eq!(class.data(), b"ATH10K-FW-DUMP\0\0\x01\0");
    // One that has expired is an error.
    assert_eq!(class.keep("devcd2").status.code(), Some(1));
}
