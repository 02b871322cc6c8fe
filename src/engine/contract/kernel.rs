//! Host names of kernels: which a tree instantiates, and which its host code
//! can ask for.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::cpp::preprocess::{self, ExpandError, Expanded, METAL, Sources};
use crate::cpp::{Kind, lex};
use crate::snapshot::{Tree, TreePath};

/// The kernels of one `.metal` file, and the files that decide them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernels {
    /// The names a host program can ask the compiled library for.
    pub names: BTreeSet<String>,
    /// What they were worked out from.
    pub sources: Sources,
}

/// The host names that compiling `file` gives: those its macros spell in a
/// `host_name` attribute, and those of kernels that are no templates.
///
/// # Errors
/// The file cannot be expanded.
pub fn kernels(tree: &dyn Tree, file: &TreePath) -> Result<Kernels, ExpandError> {
    let mut scan = Scan::default();
    let sources = preprocess::expand(tree, file, &METAL, &mut |token| scan.token(token))?;
    Ok(Kernels { names: scan.names.into_iter().collect(), sources })
}

/// Reads expanded tokens one by one and keeps the names of kernels.
#[derive(Default)]
struct Scan {
    names: Vec<String>,
    /// Since the last `;`, `{` or `}`: a template head, a host name, `kernel`.
    template: bool,
    named: bool,
    kernel: bool,
    step: Step,
}

#[derive(Default)]
enum Step {
    #[default]
    Nothing,
    /// `host_name` was read, then `(`, then the strings so far.
    HostName,
    Spelling(String),
    /// `void` was read, then a name.
    Void,
    Name(String),
}

impl Scan {
    fn token(&mut self, token: Expanded<'_>) {
        // Most tokens say nothing of a kernel.
        let tells = match token.kind {
            Kind::Identifier => {
                matches!(token.text, b"host_name" | b"void" | b"template" | b"kernel")
            }
            Kind::Punctuation => matches!(token.text, b";" | b"{" | b"}"),
            _ => false,
        };
        if !tells && matches!(self.step, Step::Nothing) {
            return;
        }
        self.step = match (std::mem::take(&mut self.step), token.kind, token.text) {
            (_, Kind::Identifier, b"host_name") => Step::HostName,
            (Step::HostName, _, b"(") => Step::Spelling(String::new()),
            (Step::Spelling(mut name), Kind::Text, text) => {
                name.push_str(&unquoted(text));
                Step::Spelling(name)
            }
            (Step::Spelling(name), _, b")") => {
                self.named = true;
                self.names.push(name);
                Step::Nothing
            }
            (_, Kind::Identifier, b"void") => Step::Void,
            (Step::Void, Kind::Identifier, name) => {
                Step::Name(String::from_utf8_lossy(name).into_owned())
            }
            (Step::Name(name), _, b"(") => {
                if self.kernel && !self.template && !self.named {
                    self.names.push(name);
                }
                Step::Nothing
            }
            _ => Step::Nothing,
        };
        match (token.kind, token.text) {
            (Kind::Identifier, b"template") => self.template = true,
            (Kind::Identifier, b"kernel") => self.kernel = true,
            (Kind::Punctuation, b";" | b"{" | b"}") => {
                (self.template, self.named, self.kernel) = (false, false, false);
            }
            _ => {}
        }
    }
}

/// A string literal's value, as far as names of kernels go: no escapes.
fn unquoted(text: &[u8]) -> Cow<'_, str> {
    let begin = memchr::memchr(b'"', text).map_or(0, |n| n + 1);
    let end = memchr::memrchr(b'"', text).unwrap_or(text.len()).max(begin);
    String::from_utf8_lossy(&text[begin..end])
}

/// Spells out `{a,b}` in a name: `x_{1,2}` is `x_1` and `x_2`.
///
/// # Errors
/// A `{` without its `}`, one inside another, or more than 10,000 names.
pub fn spelled_out(pattern: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').map(|n| open + n);
        let inside = close.map(|c| &rest[open + 1..c]).filter(|s| !s.contains('{'));
        let (Some(close), Some(inside)) = (close, inside) else {
            return Err(format!("the braces in `{pattern}` do not match"));
        };
        names = names
            .iter()
            .flat_map(|n| {
                inside
                    .split(',')
                    .map(|c| format!("{n}{}{}", &rest[..open], c.trim()))
                    .collect::<Vec<_>>()
            })
            .collect();
        if names.len() > 10_000 {
            return Err(format!("`{pattern}` spells out more than 10,000 names"));
        }
        rest = &rest[close + 1..];
    }
    if rest.contains('}') {
        return Err(format!("the braces in `{pattern}` do not match"));
    }
    names.iter_mut().for_each(|n| n.push_str(rest));
    Ok(names)
}

/// Values that host code puts between its own literals.
const VALUES: [&str; 9] =
    ["affine", "mxfp4", "mxfp8", "nvfp4", "float", "float16_t", "bfloat16_t", "true", "false"];

/// What a host function's string literals can spell, with mode names, types and
/// numbers between them. It shows that the code still builds such names; not on
/// which path it does.
#[derive(Clone, Debug)]
pub struct Speller(BTreeSet<String>);

impl Speller {
    /// Reads the literals of a function.
    #[must_use]
    pub fn new(function: &[u8]) -> Self {
        let literals = lex(function).into_iter().filter(|t| t.kind == Kind::Text);
        let literals = literals.map(|t| unquoted(t.of(function)).into_owned());
        Self(literals.filter(|t| !t.is_empty()).collect())
    }

    /// Whether they can spell `name`.
    #[must_use]
    pub fn spells(&self, name: &str) -> bool {
        spells(&self.0, name)
    }
}

fn spells(literals: &BTreeSet<String>, name: &str) -> bool {
    // reached[i].0: the first i bytes are spelled, ending in a literal;
    // .1: ending in a value. No two values stand side by side.
    let mut reached = vec![(false, false); name.len() + 1];
    reached[0].0 = true;
    for at in 0..name.len() {
        let (after_literal, after_value) = reached[at];
        if !after_literal && !after_value || !name.is_char_boundary(at) {
            continue;
        }
        let rest = &name[at..];
        for literal in literals.iter().filter(|l| rest.starts_with(l.as_str())) {
            reached[at + literal.len()].0 = true;
        }
        if after_literal {
            for value in VALUES.iter().filter(|v| rest.starts_with(**v)) {
                reached[at + value.len()].1 = true;
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                reached[at + digits].1 = true;
            }
        }
    }
    let (literal, value) = reached[name.len()];
    literal || value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{File, MemoryTree, Mode};

    fn names(text: &str) -> Vec<String> {
        let path = TreePath::new("a.metal").expect("a plain path");
        let file = File::new(Mode::Regular, text.as_bytes());
        let tree = MemoryTree([(path.clone(), file)].into());
        kernels(&tree, &path).expect("it expands").names.into_iter().collect()
    }

    #[test]
    fn macros_spell_host_names() {
        let text = "\
#define instantiate_kernel(name, func, ...) \\
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
#define one(name, type, bits) \\
  instantiate_kernel(#name \"_\" #type \"_b_\" #bits, name, type, bits)
#define all(type) one(f, type, 2) one(g, type, 4)
template <typename T, int bits> [[kernel]] void f(device T* x [[buffer(0)]]) {}
[[kernel]] void plain(uint i [[thread_position_in_grid]]) { void (*p)(int); }
kernel void old_style(uint i) {}
void helper(int i) {}
all(float) all(half)
";
        assert_eq!(
            names(text),
            ["f_float_b_2", "f_half_b_2", "g_float_b_4", "g_half_b_4", "old_style", "plain"]
        );
    }

    #[test]
    fn braces_are_spelled_out() {
        assert_eq!(
            spelled_out("a_{x,y}_b_{1, 2}").expect("it is well formed"),
            ["a_x_b_1", "a_x_b_2", "a_y_b_1", "a_y_b_2"]
        );
        assert_eq!(spelled_out("plain").expect("it is well formed"), ["plain"]);
        for bad in ["a{", "a}", "a{b{c}}", "{a,b}".repeat(14).as_str()] {
            assert!(spelled_out(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn host_code_spells_what_it_spells() {
        let host = br#"void qmv() { concatenate(kname, mode + (fast ? "_qmv_fast_" : "_qmv_"),
            type_string, "_gs_", group_size, "_b_", bits, B > 1 ? "_batch_1" : "_batch_0"); }"#;
        let host = Speller::new(host);
        assert!(host.spells("affine_qmv_fast_float16_t_gs_64_b_4_batch_0"));
        assert!(host.spells("affine_qmv_float_gs_32_b_8_batch_1"));
        assert!(!host.spells("affine_qmv_wide_float_gs_32_b_8_batch_1"));
        assert!(!host.spells("affine_qmv_float_gs_32_b_8_batch_2"));
        assert!(!host.spells("affinefloat"));
    }
}
