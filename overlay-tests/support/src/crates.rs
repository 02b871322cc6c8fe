//! A crate registry on the loopback, and a cargo home that knows no other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::server::Files;

/// Sets up `home` as a cargo home whose only registry is `files`.
///
/// # Panics
/// The folder cannot be written.
pub fn set_up(home: &Path, files: &Files) {
    fs::create_dir_all(home).unwrap();
    let config = format!(
        "[source.crates-io]\nreplace-with = \"loopback\"\n[source.loopback]\n\
         registry = \"sparse+{}/index/\"\n[net]\nretry = 0\n",
        files.url
    );
    fs::write(home.join("config.toml"), config).unwrap();
    files.put("/index/config.json", format!("{{\"dl\":\"{}/dl\"}}", files.url));
}

/// Makes this version of the crate `overlay-sample` with cargo itself, in the
/// folder `made`, with these files (name, text) besides what a crate needs;
/// lists it in the index, and gives its archive, which is not served yet: see
/// [`archive`].
///
/// # Panics
/// cargo cannot make it.
#[must_use]
pub fn publish(
    made: &Path,
    home: &Path,
    files: &Files,
    version: &str,
    sources: &[(&str, &str)],
) -> Vec<u8> {
    let manifest = format!(
        "[workspace]\n[package]\nname = \"overlay-sample\"\nversion = \"{version}\"\n\
         edition = \"2021\"\nlicense = \"MIT\"\ndescription = \"x\"\n\
         links = \"mlx\"\nbuild = \"b.rs\"\ninclude = [\"/**\"]\n[lib]\npath = \"l.rs\"\n"
    );
    let own = [("Cargo.toml", &*manifest), ("l.rs", ""), ("b.rs", "fn main() {}\n")];
    for (name, text) in own.iter().chain(sources) {
        let path = made.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = Command::new("cargo")
        .args(["package", "--no-verify", "--allow-dirty", "--offline"])
        .current_dir(made)
        .env("CARGO_TARGET_DIR", made.join("target"))
        .env("CARGO_HOME", home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let archive = made.join(format!("target/package/overlay-sample-{version}.crate"));
    let archive = fs::read(archive).unwrap();
    let sum = sum(&archive);
    let entry = format!(
        "{{\"name\":\"overlay-sample\",\"vers\":\"{version}\",\"deps\":[],\"features\":{{}},\
         \"links\":\"mlx\",\"yanked\":false,\"cksum\":\"{sum}\"}}\n"
    );
    files.append("/index/ov/er/overlay-sample", entry.as_bytes());
    archive
}

/// The files that `cargo vendor` leaves out, in whatever folder.
const LEFT_OUT: [&str; 3] = [".cargo-ok", ".gitignore", ".gitattributes"];

/// Makes `home` one that takes `overlay-sample` from the folder `vendored`, as
/// after `cargo vendor`, with the files that cargo unpacked to `unpacked` from an
/// archive of this sum. Gives the package's folder.
///
/// # Panics
/// A folder cannot be read or written.
pub fn vendor(home: &Path, vendored: &Path, unpacked: &Path, archive: &[u8]) -> PathBuf {
    let package = vendored.join("overlay-sample");
    let mut sums = serde_json::Map::new();
    let mut folders = vec![unpacked.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            let name = path.strip_prefix(unpacked).unwrap().to_path_buf();
            if path.is_dir() {
                folders.push(path);
            } else if !LEFT_OUT.iter().any(|left_out| name.ends_with(left_out)) {
                let to = package.join(&name);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(&path, &to).unwrap();
                sums.insert(name.display().to_string(), sum(&fs::read(&to).unwrap()).into());
            }
        }
    }
    let sums = serde_json::json!({ "files": sums, "package": sum(archive) });
    fs::write(package.join(".cargo-checksum.json"), sums.to_string()).unwrap();
    let config = home.join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let kept = text.split("[source").next().unwrap();
    let source = format!(
        "[source.crates-io]\nreplace-with = 'v'\n[source.v]\ndirectory = '{}'\n",
        vendored.display()
    );
    fs::write(&config, format!("{kept}{source}")).unwrap();
    package
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Where the archive of a version is asked for.
#[must_use]
pub fn archive(version: &str) -> String {
    format!("/dl/overlay-sample/{version}/download")
}
