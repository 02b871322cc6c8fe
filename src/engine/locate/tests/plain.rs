//! What heads lines in YAML, TOML, Markdown and the shell, further up than a hunk's context.

use super::*;

/// Ten lines, each a number in its place in `line`.
fn ten(line: &str) -> String {
    (0..10).map(|n| line.replace('#', &n.to_string()) + "\n").collect()
}

/// Puts a line after the fifth of the first ten in a text.
fn put(line: &str, base: &str) -> String {
    let [four, five, new] = ["4", "5", "44"].map(|n| line.replace('#', n));
    let at = base.lines().position(|l| l == four).expect("ten lines") + 1;
    format!("@@ -{at},2 +{at},3 @@\n {four}\n+{new}\n {five}\n")
}

/// A language, two heads of lines, each with a text that they are part of, and the lines.
struct Two {
    language: Language,
    heads: [&'static str; 2],
    line: &'static str,
    before: &'static str,
    after: &'static str,
}

impl Two {
    fn text(&self, [first, second]: [&str; 2]) -> String {
        let Self { line, before, after, .. } = self;
        let (own, others) = (ten(line), ten(&line.replace('#', "9#")));
        format!("{before}{first}{own}{after}{before}{second}{others}{after}")
    }

    fn places(&self, heads: [&str; 2]) -> Vec<Place> {
        let base = self.text(self.heads);
        in_language(self.language, &put(self.line, &base), &base, &self.text(heads))
    }
}

fn two(
    language: Language,
    heads: [&'static str; 2],
    line: &'static str,
    before: &'static str,
    after: &'static str,
) -> Two {
    Two { language, heads, line, before, after }
}

fn shows(places: &[Place], line: &str) -> bool {
    let placed = places[0].as_ref().expect("placed");
    placed.nearby.as_ref().is_some_and(|nearby| nearby.diff.iter().any(|own| own == line))
}

#[test]
fn a_head_with_a_label_keeps_it() {
    use Language::{Markdown, ReStructured, Shell, Toml, Yaml};
    let step = "      a: #";
    for (two, other, same) in [
        (two(Yaml, ["  a:\n", "  b:\n"], "    x#: 1", "", ""), "  c:\n", "  a: &x  # more\n"),
        (two(Yaml, ["  a:\n", "  b:\n"], "  - #", "", ""), "  c:\n", "  \"a\":\n"),
        (
            two(Yaml, ["- name: a\n", "- name: b\n"], step, "jobs:\n", ""),
            "- name: c\n",
            "- name: a\n  id: a\n",
        ),
        (two(Yaml, ["a:\n  b:\n", "c:\n  b:\n"], step, "", ""), "d:\n  b:\n", "a: &a\n  b:\n"),
        (two(Toml, ["[a]\n", "[b]\n"], "x# = 1", "", "\n"), "[c]\n", "[a]  # more\n"),
        (two(Toml, ["a = [\n", "b = [\n"], "  #,", "[t]\n", "]\n"), "c = [\n", "a = [  # more\n"),
        (
            two(Toml, ["name = \"a\"\n", "name = \"b\"\n"], "x# = 1", "[[p]]\n", "\n"),
            "name = \"c\"\n",
            "name = \"a\"  \n",
        ),
        (two(Markdown, ["## A\n", "## B\n"], "It is #.", "\n", "\n"), "## C\n", "### A\n"),
        (
            two(Markdown, ["Sec\n---\n", "Sed\n---\n"], "It is #.", "\n", "\n"),
            "See\n---\n",
            "## Sec\n",
        ),
        (
            two(ReStructured, ["Sec\n---\n", "Sed\n---\n"], "It is #.", "T\n===\n\n", "\n"),
            "See\n---\n",
            "Sec\n---\n\n",
        ),
        (
            two(Markdown, ["# A\n## B\n", "# C\n## B\n"], "It is #.", "\n", "\n"),
            "# D\n## B\n",
            "# A\n### B\n",
        ),
        (two(Shell, ["a() {\n", "b() {\n"], "  c #", "", "}\n"), "d() {\n", "function a {\n"),
        (two(Shell, ["A=(\n", "B=(\n"], "  c #", "", ")\n"), "C=(\n", "A+=(\n"),
    ] {
        let [first, second] = two.heads;
        let text = two.text(two.heads);
        assert_eq!(classes(&two.places(two.heads)), ["exact"], "{text}");
        assert_eq!(classes(&two.places([second, first])), ["conflict"], "{text}");
        assert_eq!(classes(&two.places([other, second])), ["conflict"], "{other}");
        // What is put above it is none of it, and what changes beside its label is shown.
        let above = two.places([&format!("{other}{}{}{first}", two.after, two.before), second]);
        assert_eq!(classes(&above), ["moved"], "{other}{first}");
        let places = two.places([same, second]);
        let gone = first.lines().zip(same.lines()).find(|(old, new)| old != new);
        assert!(gone.is_none_or(|(old, _)| shows(&places, &format!("-{old}"))), "{places:?}");
    }
}

#[test]
fn a_head_without_a_label_does_not_change_places() {
    use Language::{Shell, Yaml};
    for (two, anew) in [
        (two(Yaml, ["- uses: a@1\n", "- uses: b@1\n"], "    x#: 1", "", ""), "- uses: a@2\n"),
        (two(Yaml, ["  if a; then\n", "  if b; then\n"], "    c #", "", ""), "  if z; then\n"),
        (two(Shell, ["if a; then\n", "if b; then\n"], "  c #", "", "fi\n"), "if z; then\n"),
        (two(Shell, ["if a\nthen\n", "if b\nthen\n"], "  c #", "", "fi\n"), "if z\nthen\n"),
        (two(Shell, ["a)\n", "b)\n"], "  c #", "", "  ;;\n"), "a|z)\n"),
        (two(Shell, ["for x in a; do\n", "while b; do\n"], "  c #", "", "done\n"), "for y; do\n"),
        (two(Shell, ["cat <<X >a\n", "cat <<X >b\n"], "c #", "", "X\n"), "cat <<X >c\n"),
    ] {
        let [first, second] = two.heads;
        assert_eq!(classes(&two.places(two.heads)), ["exact"], "{first}");
        let places = two.places([second, first]);
        assert!(why(&places).contains("which is at line"), "{first} {places:?}");
        let (old, _) = first.split_once('\n').expect("a line");
        assert!(shows(&two.places([anew, second]), &format!("-{old}")), "{anew}");
    }
}

/// Comments, fences and here-documents head nothing.
#[test]
fn what_is_no_head_may_change() {
    use Language::{Markdown, Shell, Toml, Yaml};
    for (two, other) in [
        (two(Yaml, ["# a:\n", "# b:\n"], "  x#: 1", "k:\n", ""), "# c:\n"),
        (two(Toml, ["# [a]\n", "# [b]\n"], "x# = 1", "[t]\n", ""), "; c\n"),
        (
            two(Markdown, ["```\n# a\n```\n", "~~~\n# b\n~~~\n"], "It is #.", "# T\n", ""),
            "~~~~\n# c\n~~~\n# d\n~~~~\n",
        ),
        (
            two(
                Markdown,
                ["- ```a\n  # a\n  ```\n", "- ```b\n  # b\n  ```\n"],
                "It is #.",
                "# T\n",
                "",
            ),
            "- ```c\n  # c\n  ```\n",
        ),
        (two(Shell, ["# a\n", "# b\n"], "  c #", "f() {\n", "}\n"), "  # c\n"),
        (
            two(
                Shell,
                ["  cat <<A\na() {\nA\n", "  cat <<-'B'\nb() {\n B\n"],
                "  c #",
                "f() {\n",
                "}\n",
            ),
            "  cat <<\"C\"\nc() {\nC\n",
        ),
    ] {
        let places = two.places([other, two.heads[1]]);
        assert!(places[0].is_ok(), "{other} {places:?}");
        // What is above it heads the lines all the same.
        let base = two.text(two.heads);
        let renamed = base.replacen(['k', 't', 'T', 'f'], "z", 1);
        let places = in_language(two.language, &put(two.line, &base), &base, &renamed);
        assert_eq!(classes(&places), ["conflict"], "{renamed}");
    }
}

/// It is listed, as whatever changes above.
#[test]
fn prose_may_get_a_title() {
    let line = "It is #.";
    for before in ["", "## A\n"] {
        let base = format!("{before}{}", ten(line));
        let text = format!("# T\n\n{base}");
        let places = in_language(Language::Markdown, &put(line, &base), &base, &text);
        assert!(shows(&places, "+# T"), "{places:?}");
        let text = format!("{base}## B\n");
        let text = text.replacen("It is 2.", "## B\nIt is 2.", 1);
        let places = in_language(Language::Markdown, &put(line, &base), &base, &text);
        assert_eq!(places[0].is_ok(), before.is_empty(), "{places:?}");
    }
}

/// Where the language is not known the diff alone places them.
#[test]
fn the_name_tells_the_language() {
    use Language::{Markdown, Other, Shell, Toml, Yaml};
    for (name, language) in [
        (".github/workflows/a.yml", Yaml),
        ("a.yaml", Yaml),
        ("pyproject.toml", Toml),
        ("setup.cfg", Toml),
        ("README.md", Markdown),
        ("a.b/c.sh", Shell),
        ("a.md/LICENSE", Other),
        ("md", Other),
        ("CMakeLists.txt", Other),
    ] {
        assert_eq!(Language::of(&crate::snapshot::TreePath::new(name).expect("a name")), language);
    }
}
