//! A pack whose objects are stored as they are.
//!
//! Unpacking was two fifths of what a fresh tree costs, and a pin's objects are ten megabytes
//! (MLX at 9a795735, where a pack of git's has five). So the cache keeps them unpacked, in
//! a pack all the same: it is one file, and git reads it.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::ObjectType;
use sha1::{Digest, Sha1};

/// Writes a pack of the second version, object by object, each stored whole.
pub(super) struct PackWriter<W> {
    to: W,
    hash: Sha1,
}

impl<W: Write> PackWriter<W> {
    /// Begins a pack of `count` objects.
    pub(super) fn begin(to: W, count: u32) -> io::Result<Self> {
        let mut pack = Self { to, hash: Sha1::new() };
        pack.write(&[*b"PACK", 2_u32.to_be_bytes(), count.to_be_bytes()].concat())?;
        Ok(pack)
    }

    /// Adds an object of its kind and bytes.
    pub(super) fn object(&mut self, kind: ObjectType, bytes: &[u8]) -> io::Result<()> {
        let head = head(kind, bytes.len());
        // The format wants a zlib stream; one of level nothing holds the bytes as they are.
        let mut stream = ZlibEncoder::new(head, Compression::none());
        stream.write_all(bytes)?;
        self.write(&stream.finish()?)
    }

    /// Ends it with the hash of all that was written.
    pub(super) fn end(mut self) -> io::Result<W> {
        let hash = self.hash.finalize();
        self.to.write_all(&hash)?;
        Ok(self.to)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.to.write_all(bytes)
    }
}

/// Kind and length, four bits of it and then seven a byte, the lowest first; a byte's
/// top bit says that another follows.
fn head(kind: ObjectType, length: usize) -> Vec<u8> {
    let kind = match kind {
        ObjectType::Commit => 1,
        ObjectType::Tree => 2,
        ObjectType::Blob => 3,
        ObjectType::Tag => 4,
        ObjectType::Any => unreachable!("an object that was read has its kind"),
    };
    let mut byte = kind << 4 | (length & 15) as u8;
    let mut rest = length >> 4;
    let mut head = Vec::new();
    while rest > 0 {
        head.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    head.push(byte);
    head
}

#[cfg(test)]
mod tests {
    use git2::{Oid, Repository};

    use super::*;

    #[test]
    fn git_reads_every_object_back() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(dir.path()).unwrap();
        // About the lengths where the head and a stored block take one more byte or block.
        let lengths = [0, 1, 15, 16, 2047, 2048, 65_535, 65_536, 300_000];
        let blob = |length: usize| (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
        let blobs: Vec<Vec<u8>> = lengths.into_iter().map(blob).collect();

        let odb = repository.odb().unwrap();
        let mut writer = odb.packwriter().unwrap();
        let mut pack = PackWriter::begin(&mut writer, blobs.len() as u32).unwrap();
        for blob in &blobs {
            pack.object(ObjectType::Blob, blob).unwrap();
        }
        pack.end().unwrap();
        writer.commit().unwrap();

        for blob in &blobs {
            let id = Oid::hash_object(ObjectType::Blob, blob).unwrap();
            assert!(repository.find_blob(id).unwrap().content() == blob, "{} bytes", blob.len());
        }
        let packs = dir.path().join("objects/pack").read_dir().unwrap().map(|f| f.unwrap());
        let pack = packs.map(|f| f.path()).find(|f| f.extension().is_some_and(|e| e == "pack"));
        let written: usize = blobs.iter().map(Vec::len).sum();
        let size = pack.unwrap().metadata().unwrap().len() as usize;
        assert!((written..written + 400).contains(&size), "{size} for {written}");
    }
}
