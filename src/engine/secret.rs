//! URLs as they may be shown: without the name and the password in them.

use std::borrow::Cow;

use crate::source::SnapshotSource;

/// What stands in the place of a login.
const HIDDEN: &str = "***";

/// A text whose URLs have `***` for what stands before the `@` of their host: a
/// password, or a token in the place of the name. So has an address of the form
/// `name:password@host:path`, if it is the whole text; one without a password has no
/// secret in it.
#[must_use]
pub fn hidden(text: &str) -> Cow<'_, str> {
    if let Some(length) = scp_login(text) {
        return format!("{HIDDEN}{}", &text[length..]).into();
    }
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + 3);
        shown.push_str(before);
        rest = match login(url) {
            0 => url,
            length => {
                shown.push_str(HIDDEN);
                &url[length..]
            }
        };
    }
    match shown.is_empty() {
        true => text.into(),
        false => (shown + rest).into(),
    }
}

/// How long the login with a password is that an address begins with, which has no
/// scheme: as git has it, a `:` comes before any `/`.
fn scp_login(address: &str) -> Option<usize> {
    let (name, rest) = address.split_once(':')?;
    let is_one = !name.contains('/') && !rest.starts_with("//");
    let is_address = is_one && !address.contains(char::is_whitespace);
    // A released tree, named where a repository was to be, has none.
    let is_login = is_address && address.parse::<SnapshotSource>().is_err();
    // What follows the last sign is shown: a password may have one too.
    Some(name.len() + 1 + rest.rfind('@').filter(|_| is_login)?)
}

/// How long the login is that a URL has behind its scheme.
fn login(url: &str) -> usize {
    let url = url.split(|c: char| c.is_whitespace() || "`'\"<>".contains(c)).next().unwrap_or(url);
    let host = url.split(['/', '?', '#']).next().unwrap_or(url);
    let is_port = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match host.rsplit_once(':') {
        _ if host.contains('@') => host.rfind('@').unwrap_or_default(),
        // No host ends so: a password with a sign in it that should be written `%2F`.
        Some((_, word)) if !is_port(word) && !word.ends_with(']') => {
            url.rfind('@').unwrap_or_default()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_login_is_shown() {
        for (text, shown) in [
            ("https://host/a", "https://host/a"),
            ("https://host:80/@a/b@c", "https://host:80/@a/b@c"),
            ("http://[::1]/a@b", "http://[::1]/a@b"),
            ("no URL: a@b", "no URL: a@b"),
            ("https://me:secret@host:80/a?b", "https://***@host:80/a?b"),
            ("https://token@host", "https://***@host"),
            ("https://me:se/cr#et@host/a", "https://***@host/a"),
            ("https://me:s@cret@host/a", "https://***@host/a"),
            ("of `ssh://me:secret@h` and git://t@h, say", "of `ssh://***@h` and git://***@h, say"),
            ("https://host/ and a@b", "https://host/ and a@b"),
            ("é://é:é@é é", "é://***@é é"),
            ("me:secret@host:/a", "***@host:/a"),
            ("me:s@cr/et@host:a", "***@host:a"),
            ("me:secret@host", "***@host"),
            ("git@host:a/b", "git@host:a/b"),
            ("/a:b@c", "/a:b@c"),
            ("./me:secret@host:/a", "./me:secret@host:/a"),
            ("crate:a@1.0.0:b/c", "crate:a@1.0.0:b/c"),
            ("file://me:secret@host/a", "file://***@host/a"),
            ("file:me:secret@host/a", "***@host/a"),
        ] {
            assert_eq!(hidden(text), shown);
        }
    }
}
