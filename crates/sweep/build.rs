//! The model's version: a hash of the sources that figures come from. Cells of another model
//! have other ids, so that a sweep is never resumed or merged across a change of the model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 8] = [
    "../../policy",
    "../machine/src",
    "../measure/src",
    "../policy/csrc",
    "../policy/src",
    "../sim/src",
    "../study/src",
    "../workload/src",
];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for directory in SOURCES {
        println!("cargo::rerun-if-changed={directory}");
        list(Path::new(directory), &mut files)?;
    }
    files.sort();
    // FNV-1a.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for file in files {
        add(file.to_string_lossy().as_bytes());
        add(&fs::read(&file)?);
    }
    println!("cargo::rustc-env=REVEILLE_MODEL={}-{hash:016x}", env!("CARGO_PKG_VERSION"));
    Ok(())
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => list(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
