//! Statements that open what a hunk is in, further up than its context.

use super::*;

/// Ten rows, indented.
fn rows(indent: usize) -> String {
    (0..10).map(|n| format!("{:indent$}{n},\n", "")).collect()
}

/// Puts a row after the fifth of those that begin at this line.
fn put(rows_at: usize, indent: usize) -> String {
    let (at, i) = (rows_at + 4, " ".repeat(indent));
    format!("@@ -{at},2 +{at},3 @@\n {i}4,\n+{i}44,\n {i}5,\n")
}

/// Both blocks of rows, each with what opens and closes it.
struct Two {
    before: &'static str,
    first: &'static str,
    between: &'static str,
    second: &'static str,
    after: &'static str,
}

impl Two {
    fn text(&self, first: &str, second: &str) -> String {
        let Self { before, between, after, .. } = self;
        format!("{before}{first}\n{}{between}{second}\n{}{after}", rows(4), rows(4))
    }

    fn places(&self, first: &str, second: &str) -> Vec<Place> {
        let base = self.text(self.first, self.second);
        let at = format!("{}{}\n", self.before, self.first).lines().count() + 1;
        mapped(&put(at, 4), &base, &self.text(first, second))
    }
}

fn nearby(places: &[Place]) -> Vec<String> {
    let placed = places[0].as_ref().expect("placed");
    placed.nearby.as_ref().map(|nearby| nearby.diff.clone()).unwrap_or_default()
}

fn two(
    before: &'static str,
    [first, second]: [&'static str; 2],
    between: &'static str,
    after: &'static str,
) -> Two {
    Two { before, first, between, second, after }
}

#[test]
fn data_of_another_label_is_other_data() {
    let cpp = "#include <m>\n\nstatic const T t = {\n";
    let inner = "#include <m>\n\nT f() {\n";
    let python = "import m\n\n";
    let dict = "import m\n\nD = {\n";
    let list = "import m\n\nD = [\n";
    let call = "import m\n\nf(\n";
    let def = "import m\n\ndef f():\n  return {\n";
    let cmake = "project(m)\n\n";
    for (two, same) in [
        (two(cpp, ["  {\"a\", {", "  {\"b\", {"], "  }},\n", "  }},\n};\n"), "  T{\"a\", {"),
        (two(cpp, ["  {E::a, {", "  {E::b, {"], "  }},\n", "  }},\n};\n"), "  {E::a,\n   {"),
        (two(cpp, ["  {\"a\", 1,", "  {\"b\", 1,"], "  },\n", "  },\n};\n"), "  {\"a\", 2,"),
        (two(cpp, ["  [A] = {", "  [B] = {"], "  },\n", "  },\n};\n"), "  [A] = T{"),
        (two(cpp, ["  .a = {", "  .b = {"], "  },\n", "  },\n};\n"), "  .a = T{"),
        (
            two(inner, ["  x[\"a\"] = {", "  x[\"b\"] = {"], "  };\n", "  };\n}\n"),
            "  x[\"a\"] = T{",
        ),
        (two(dict, ["  \"a\": [", "  \"b\": ["], "], \n", "]}\n"), "  \"a\": list(["),
        (two(list, ["  (\"a\", [", "  (\"b\", ["], "]),\n", "])]\n"), "  (\"a\", list(["),
        (two(python, ["x[\"a\"] = [", "x[\"b\"] = ["], "]\n", "]\n"), "x[\"a\"] += ["),
        (two(call, ["  a=[", "  b=["], "],\n", "])\n"), "  a=list(["),
        (two(def, ["    \"a\": [", "    \"b\": ["], "],\n", "]}\n"), "    \"a\": T(["),
    ] {
        let base = two.places(two.first, two.second);
        assert_eq!(classes(&base), ["exact"], "{}", two.first);
        let places = two.places(two.second, two.first);
        assert!(why(&places).contains("and it was made for `"), "{} {places:?}", two.first);
        let other = two.first.replace("\"a\"", "\"c\"").replace("a=", "c=");
        let other = other.replace("E::a", "E::c").replace("[A]", "[C]").replace(".a", ".c");
        assert_eq!(classes(&two.places(&other, two.second)), ["conflict"], "{other}");
        let places = two.places(same, two.second);
        assert!(places[0].is_ok(), "{same} {places:?}");
        assert!(!nearby(&places).is_empty(), "{same}");
    }
    // What its commands fill, and its functions.
    let files: String = (0..10).map(|n| format!("  f{n}.cpp\n")).collect();
    let body = "@@ -8,2 +8,3 @@\n   f4.cpp\n+  mine.cpp\n   f5.cpp\n";
    for (first, second, same) in [
        ("set_target_properties(A B", "set_target_properties(C B", "set_target_properties(A C"),
        ("my_sources(A", "my_sources(B", "MY_SOURCES(A x"),
        ("function(a x)\n f(", "function(b x)\n f(", "FUNCTION(a y)\n f("),
        ("macro(a)\n f(", "macro(b)\n f(", "macro(a y)\n f("),
    ] {
        let end = |open: &str| match open.split_once('(').map(|open| open.0) {
            Some("function") => "endfunction()\n",
            Some("macro") => "endmacro()\n",
            _ => "",
        };
        let end = end(first);
        let text = |first: &str, second: &str| {
            format!("{cmake}{first}\n{files})\n{end}{second}\n{files})\n{end}")
        };
        let body = match end {
            "" => body.to_owned(),
            _ => body.replace("8,", "9,"),
        };
        let base = text(first, second);
        assert_eq!(classes(&mapped(&body, &base, &base)), ["exact"]);
        let places = mapped(&body, &base, &text(second, first));
        assert!(why(&places).contains("and it was made for `"), "{first} {places:?}");
        let places = mapped(&body, &base, &text(same, second));
        assert!(!nearby(&places).is_empty(), "{same} {places:?}");
    }
}

#[test]
fn arms_and_calls_that_changed_places_conflict() {
    let script = "import m\n\ndef f():\n";
    let block = "#include <m>\n\nvoid f() {\n";
    for (two, other) in [
        (
            two(
                block,
                ["  if (a) {\n  p(", "  } else if (b) {\n  p("],
                "  1);\n",
                "  1);\n  }\n}\n",
            ),
            ["  if (b) {\n  p(", "  } else if (a) {\n  p("],
        ),
        (
            two(block, ["  if (a) {\n  p(", "  } else {\n  p("], "  1);\n", "  1);\n  }\n}\n"),
            ["  if (a) {\n  q();\n  } else {\n  p(", "  }\n  if (c) {\n  p("],
        ),
        (
            two(
                block,
                ["  for (x : a) {\n  p(", "  for (x : b) {\n  p("],
                "  1);\n  }\n",
                "  1);\n  }\n}\n",
            ),
            ["  for (x : b) {\n  p(", "  for (x : a) {\n  p("],
        ),
        (
            two(
                block,
                ["  switch (x) {\n  case A:\n  p(", "  case B:\n  p("],
                "  1);\n",
                "  1);\n  }\n}\n",
            ),
            ["  switch (x) {\n  case B:\n  p(", "  case A:\n  p("],
        ),
        (
            two(
                block,
                ["  dispatch(one, [&](int a) {\n  p(", "  dispatch(two, [&](int a) {\n  p("],
                "  1);\n  });\n",
                "  1);\n  });\n}\n",
            ),
            ["  dispatch(two, [&](int a) {\n  p(", "  dispatch(one, [&](int a) {\n  p("],
        ),
        (
            two(
                block,
                ["  DISPATCH(one, {\n  p(", "  DISPATCH(two, {\n  p("],
                "  1);\n  });\n",
                "  1);\n  });\n}\n",
            ),
            ["  DISPATCH(two, {\n  p(", "  DISPATCH(one, {\n  p("],
        ),
        (two(block, ["  run(a,", "  run(b,"], "  1);\n", "  1);\n}\n"), ["  run(b,", "  run(a,"]),
        (
            two(script, ["  if a:\n   p(", "  elif b:\n   p("], "   )\n", "   )\n"),
            ["  if b:\n   p(", "  elif a:\n   p("],
        ),
        (
            two(script, ["  run(a, [", "  run(b, ["], "  ])\n", "  ])\n"),
            ["  run(b, [", "  run(a, ["],
        ),
    ] {
        let places = two.places(other[0], other[1]);
        assert!(why(&places).contains("and it was made for `"), "{} {places:?}", two.first);
        assert!(why(&places).contains("which is at line"), "{}", why(&places));
        // Where it was written anew it stays placed, and is shown.
        let anew = two
            .first
            .replace("(a", "(z")
            .replace("if a", "if z")
            .replace("case A", "case Z")
            .replace("one", "uno")
            .replace(": a", ": z");
        assert_ne!(anew, two.first);
        let places = two.places(&anew, two.second);
        assert!(places[0].is_ok(), "{anew} {places:?}");
        assert!(!nearby(&places).is_empty(), "{anew}");
    }
}

#[test]
fn arms_and_sections_of_cmake_that_changed_places_conflict() {
    let files = |name: &str| -> String { (0..10).map(|n| format!("  {name}{n}.cpp\n")).collect() };
    let body = "@@ -8,2 +8,3 @@\n   f4.cpp\n+  mine.cpp\n   f5.cpp\n";
    let text = |first: &str, second: &str, end: &str| {
        format!("project(m)\n\n{first}\n{}{second}\n{}{end}\n", files("f"), files("g"))
    };
    for (first, second, end, other, anew) in [
        (
            "target_sources(m PRIVATE",
            " PUBLIC",
            ")",
            ["target_sources(m PUBLIC", " PRIVATE"],
            "target_sources(m INTERFACE",
        ),
        (
            "if(A)\n f(",
            " )\nelseif(B)\n f(",
            ")\nendif()",
            ["if(B)\n f(", " )\nelseif(A)\n f("],
            "if(Z)\n f(",
        ),
        (
            "if(A)\n f(",
            " )\nelse()\n f(",
            ")\nendif()",
            ["if(A)\nelse()\n f(", " )\nendif()\nif(B)\n f("],
            "if(NOT A)\n f(",
        ),
        (
            "foreach(x A)\n f(",
            " )\nendforeach()\nforeach(x B)\n f(",
            ")\nendforeach()",
            ["foreach(x B)\n f(", " )\nendforeach()\nforeach(x A)\n f("],
            "foreach(y A)\n f(",
        ),
    ] {
        let body = match first.contains('\n') {
            true => body.replace("8,", "9,"),
            false => body.to_owned(),
        };
        let base = text(first, second, end);
        let places = mapped(&body, &base, &text(other[0], other[1], end));
        assert!(why(&places).contains("and it was made for `"), "{first} {places:?}");
        let places = mapped(&body, &base, &text(anew, second, end));
        assert!(places[0].is_ok(), "{anew} {places:?}");
        assert!(!nearby(&places).is_empty(), "{anew}");
    }
}

#[test]
fn what_changed_in_an_opening_is_shown_outside_of_functions_too() {
    for (head, other, end) in [
        ("static int A[] = {", "static const int A[] = {", "};"),
        ("namespace n {\nstruct A : B {\n", "namespace n {\nstruct A : C {\n", "};\n}"),
        (
            "namespace n {\nint a;\n\n  enum E {\n",
            "namespace n {\nint a;\n\n  enum E : int {\n",
            "  };\n}",
        ),
        ("import m\n\nA = [", "import m\n\nA: list[int] = [", "]"),
        ("import m\n\nif a:\n  A = [", "import m\n\nif b:\n  A = [", "  ]"),
    ] {
        let text = |head: &str| format!("{head}\n{}{end}\n", rows(4));
        let body = put(head.lines().count() + 1, 4);
        let places = mapped(&body, &text(head), &text(other));
        let shown = nearby(&places);
        let expected = head.lines().zip(other.lines()).filter(|(old, new)| old != new);
        for (old, new) in expected {
            assert!(shown.contains(&format!("-{old}")), "{other} {places:?}");
            assert!(shown.contains(&format!("+{new}")), "{other} {shown:?}");
        }
    }
}

#[test]
fn a_text_of_cmake_is_told_by_its_commands() {
    let blocks = "function(A)\n  if(X)\n    one()\n    two()\n    three()\n    four()\n  endif()\nendfunction()\n";
    for before in ["", "# a\n", "# a;\n", "set(Q \"\n  a;\n\")\n", "add_definitions(-D\\\"Q)\n"] {
        let base = format!("{before}{blocks}");
        let at = base.lines().position(|line| line == "    two()").expect("it is there") + 1;
        let body = format!("@@ -{at},2 +{at},3 @@\n     two()\n+    new()\n     three()\n");
        assert_eq!(classes(&mapped(&body, &base, &base)), ["exact"]);
        for (from, to) in
            [("  if(X)\n", "  if(X)\n    q()\n  else()\n"), ("function(A)", "function(B)")]
        {
            let places = mapped(&body, &base, &base.replace(from, to));
            assert!(why(&places).contains("and it was made for `"), "{before} {to} {places:?}");
        }
    }
    let head = "import m\n\ndef f(a):\n  x\n\n";
    for python in [head, "import m\n\n", "import m\n\n# a;\n", "import m\n\n\"\"\"\na;\n\"\"\"\n"] {
        let two = two("", ["A = [", "B = ["], "]\n", "]\n");
        let base = format!("{python}{}", two.text("A = [", "B = ["));
        let other = format!("{python}{}", two.text("B = [", "A = ["));
        let at = python.lines().count() + 2;
        assert_eq!(classes(&mapped(&put(at, 4), &base, &other)), ["conflict"], "{base}");
    }
}

#[test]
fn what_a_call_is_given_first_may_stand_on_the_next_line() {
    let call =
        |name: &str| format!("  m.def(\n      \"{name}\",\n      &f,\n{}      z);\n", rows(6));
    let text = |one: &str, two: &str| format!("void init(M& m) {{\n{}{}}}\n", call(one), call(two));
    let base = text("one", "two");
    let body = put(5, 6);
    assert_eq!(classes(&mapped(&body, &base, &text("one", "other"))), ["exact"]);
    let places = mapped(&body, &base, &text("two", "one"));
    assert_eq!(classes(&places), ["conflict"], "{places:?}");
    let told =
        "under `m.def( \"two\",`, and it was made for `m.def( \"one\",`, which is at line 16";
    assert!(why(&places).contains(told), "{places:?}");
    // Where it was written anew, the line is told that does.
    let shown = nearby(&mapped(&body, &base, &text("new", "two")));
    assert!(shown.contains(&"-      \"one\",".to_owned()), "{shown:?}");
}

/// What opens a block around functions of Python, and the arms before it.
#[test]
fn a_block_around_a_function_heads_what_is_in_it() {
    for ([first, second], anew, others) in [
        (
            ["if a:\n  def f():\n   p(", "if b:\n  def g():\n   p("],
            "if z:\n  def f():\n   p(",
            ["if b:\n  def f():\n   p(", "if a:\n  def g():\n   p("],
        ),
        (
            ["with a:\n  def f():\n   p(", "with b:\n  def g():\n   p("],
            "with z:\n  def f():\n   p(",
            ["with b:\n  def f():\n   p(", "with a:\n  def g():\n   p("],
        ),
        (
            ["if a:\n  x\nelse:\n  def f():\n   p(", "if b:\n  def g():\n   p("],
            "if z:\n  x\nelse:\n  def f():\n   p(",
            ["if b:\n  x\nelse:\n  def f():\n   p(", "if a:\n  x\nelse:\n  def g():\n   p("],
        ),
    ] {
        for around in ["import m\n\n", "def o():\n  import m\n", "class C:\n  import m\n"] {
            let indented = |text: &str| match around.starts_with("import") {
                true => text.to_owned(),
                false => text.lines().map(|line| format!("  {line}\n")).collect(),
            };
            let text = |[first, second]: [&str; 2]| {
                let (one, two) = (rows(4), rows(4).replace("  ", "   "));
                format!("{around}{}", indented(&format!("{first}\n{one}  )\n{second}\n{two}  )\n")))
            };
            let base = text([first, second]);
            let row = base.lines().position(|line| line.trim() == "4,").expect("rows") + 1;
            let indent = indented(&rows(4)).find('0').expect("a row");
            let body = put(row - 4, indent);
            assert_eq!(classes(&mapped(&body, &base, &base)), ["exact"]);
            let places = mapped(&body, &base, &text(others));
            assert!(why(&places).contains("which is at line"), "{first} {places:?}");
            let places = mapped(&body, &base, &text([anew, second]));
            let (old, _) = first.split_once('\n').expect("a head");
            let shown = nearby(&places);
            assert!(
                shown.iter().any(|line| line.trim_start_matches(['-', ' ']) == old),
                "{shown:?}"
            );
        }
    }
}

#[test]
fn the_arms_before_the_one_that_lines_are_in_are_shown() {
    let files: String = (0..10).map(|n| format!("  f{n}()\n")).collect();
    for (first, last, anew) in [
        ("if(A)\n  x()\n", "else()\n", "if(Z)\n  x()\n"),
        ("if(A)\n  x()\n", "elseif(B)\n", "if(Z)\n  x()\n"),
        ("if(A)\n  block()\n  endblock()\n", "else()\n", "if(Z)\n  block()\n  endblock()\n"),
        ("if A:\n  x()\nelif B:\n  x()\n", "else:\n", "if Z:\n  x()\nelif B:\n  x()\n"),
        ("if A:\n  x()\n", "elif B:\n", "if Z:\n  x()\n"),
    ] {
        let (before, end) = match last.ends_with(":\n") {
            true => ("import m\n\n", ""),
            false => ("project(m)\n\n", "endif()\n"),
        };
        let text = |first: &str| format!("{before}{first}{last}{files}{end}");
        let base = text(first);
        let at = base.lines().position(|line| line == "  f4()").expect("a call") + 1;
        let body = format!("@@ -{at},2 +{at},3 @@\n   f4()\n+  mine()\n   f5()\n");
        let (old, _) = first.split_once('\n').expect("an arm");
        let shown = nearby(&mapped(&body, &base, &text(anew)));
        assert!(shown.contains(&format!("-{old}")), "{anew}{last}{shown:?}");
    }
}
