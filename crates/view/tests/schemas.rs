//! The schemas that are checked in are those of the types: `UNWEDGE_BLESS=1 cargo test -p unwedge-view --features schema --test schemas`
//! updates them. A new one is an empty file before that, which `view/src/schema.rs` includes.

use std::path::Path;
use unwedge_view::schema::{documents, file_name, published};

#[test]
fn schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut wrong = Vec::new();
    for (verb, document) in documents() {
        let mut text = serde_json::to_string_pretty(&document).expect("a document");
        text.push('\n');
        if std::env::var_os("UNWEDGE_BLESS").is_some() {
            std::fs::write(folder.join(file_name(verb)), &text).expect("the folder of schemas");
        } else if published(verb) != Some(text.as_str()) {
            wrong.push(verb);
        }
    }
    assert!(wrong.is_empty(), "not as the types: {wrong:?}; UNWEDGE_BLESS=1 updates them");
    let mut files: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder of schemas")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let mut known: Vec<String> = documents().iter().map(|(verb, _)| file_name(verb)).collect();
    files.sort();
    known.sort();
    assert_eq!(files, known, "a file for each command");
}
