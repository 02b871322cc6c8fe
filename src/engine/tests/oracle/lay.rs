//! Lays a parsed patch over a tree at the lines it states, and nowhere else.

use mlx_overlay_engine::patch::names::{self, Names};
use mlx_overlay_engine::patch::{Body, FilePatch, Hunk, Operation, Patch, Refusal, binary, parse};
use mlx_overlay_engine::snapshot::{Mode, TreePath};

use crate::forest::Forest;

/// Parses, and checks that the bytes print back.
pub fn read(bytes: &[u8]) -> Patch {
    let patch = parse(bytes)
        .unwrap_or_else(|e| panic!("{e} ({})\n{}", e.remedy, String::from_utf8_lossy(bytes)));
    assert!(patch.to_bytes() == bytes, "prints other bytes:\n{}", String::from_utf8_lossy(bytes));
    patch
}

/// The tree after the patch. The file patches of one `git diff` all speak of
/// the tree before, so `from` stays as it is; a mailbox is laid mail by mail.
pub fn lay(patch: &Patch, strip: usize, from: &Forest) -> Result<Forest, Refusal> {
    let exists = |path: &TreePath| from.contains_key(path.as_str());
    let prefixes = names::prefixes(patch, &exists);
    let mut gone = Vec::new();
    let mut there = Forest::new();
    for file in &patch.files {
        let names = names::resolve(file, strip, prefixes, &exists)?;
        let (path, content) = after(file, &names, from)?;
        if let (Some(old), true) = (&names.old, names.operation != Operation::Copy) {
            gone.push(old.to_string());
        }
        if let Some(content) = content {
            there.insert(path, content);
        }
    }
    let mut new = from.clone();
    new.retain(|path, _| !gone.contains(path));
    new.extend(there);
    Ok(new)
}

type Content = Option<(Mode, Vec<u8>)>;

fn after(file: &FilePatch, names: &Names, from: &Forest) -> Result<(String, Content), Refusal> {
    let old = names.old.as_ref().map(|path| {
        from.get(path.as_str()).unwrap_or_else(|| panic!("`{path}` is named and not there"))
    });
    let bytes = old.map(|(_, bytes)| bytes.as_slice());
    let bytes = match &file.body {
        Body::Text(hunks) => lay_hunks(hunks, bytes.unwrap_or_default()),
        Body::Binary(_) | Body::BinaryWithoutData(_) => binary::apply(file, bytes)?,
    };
    if let (Some(stated), Some((mode, _))) = (file.old_mode, old) {
        assert_eq!(stated, *mode, "old mode of {names:?}");
    }
    let Some(new) = &names.new else {
        assert!(bytes.is_empty(), "a deletion leaves bytes");
        return Ok((String::new(), None));
    };
    let mode = file.new_mode.or(old.map(|(mode, _)| *mode)).unwrap_or(Mode::Regular);
    Ok((new.to_string(), Some((mode, bytes))))
}

/// Every hunk at its old lines.
pub fn lay_hunks(hunks: &[Hunk], bytes: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    let mut out: Vec<&[u8]> = Vec::new();
    let mut at = 0;
    for hunk in hunks {
        let begin = hunk.old.start - usize::from(hunk.old.len > 0);
        out.extend(&lines[at..begin]);
        at = begin + hunk.old.len;
        assert!(hunk.preimage().eq(lines[begin..at].iter().copied()), "line {}", hunk.line);
        out.extend(hunk.postimage());
    }
    out.extend(&lines[at..]);
    out.concat()
}
