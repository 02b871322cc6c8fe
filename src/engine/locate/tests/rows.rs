//! Rows of a list over several lines, which their first element tells from each other.

use super::*;

/// A list of two rows, each with its first element, between what is around it.
struct Rows {
    around: [&'static str; 2],
    /// What a row begins with up to a `#`, which is its name, and what it ends with.
    row: [&'static str; 2],
    element: &'static str,
}

impl Rows {
    fn text(&self, names: [&str; 2]) -> String {
        let Self { around: [before, after], row: [begin, end], element } = self;
        let row = |name: &str, from: usize| {
            let elements = (from..from + 10).map(|n| element.replace('#', &n.to_string()) + "\n");
            format!("{}\n{}{end}\n", begin.replace('#', name), elements.collect::<String>())
        };
        format!("{before}\n{}{}{after}\n", row(names[0], 10), row(names[1], 20))
    }

    /// Puts an element after the fifth of the first row.
    fn places(&self, names: [&str; 2]) -> Vec<Place> {
        let base = self.text(["one", "two"]);
        let [four, five, new] = ["14", "15", "44"].map(|n| self.element.replace('#', n));
        let at = base.lines().position(|line| line == four).expect("a row") + 1;
        let body = format!("@@ -{at},2 +{at},3 @@\n {four}\n+{new}\n {five}\n");
        mapped(&body, &base, &self.text(names))
    }
}

const CPP: [&str; 2] = ["#include <m>\n\nT t[] = {", "};"];
const PYTHON: [&str; 2] = ["import m\n\nt = [", "]"];
const JSON: [&str; 2] = ["{\n\"t\": [", "{}]}"];

fn rows(around: [&'static str; 2], row: [&'static str; 2], element: &'static str) -> Rows {
    Rows { around, row, element }
}

#[test]
fn the_name_of_a_row_is_its_label() {
    for rows in [
        rows(CPP, ["  {\n    .name = \"#\",", "  },"], "    .x# = 1,"),
        rows(CPP, ["  T{.name = \"#\",", "  },"], "    .x# = 1,"),
        rows(CPP, ["  {\n    {\"name\", \"#\"},", "  },"], "    {\"x#\", 1},"),
        rows(PYTHON, ["  {\n    \"name\": \"#\",", "  },"], "    \"x#\": 1,"),
        rows(PYTHON, ["  {'id': '#',", "  },"], "    \"x#\": 1,"),
        rows(JSON, ["  {\n    \"name\": \"#\",", "    \"z\": 0},"], "    \"x#\": 1,"),
        rows(["{\n\"t\": {", "\"z\": {}}}"], ["  \"#\": {", "    \"z\": 0},"], "    \"x#\": 1,"),
        rows(["{\n\"t\": {", "\"z\": {}}}"], ["  \"#\": [", "    \"z\"],"], "    \"x#\","),
    ] {
        assert_eq!(classes(&rows.places(["one", "two"])), ["exact"], "{}", rows.row[0]);
        for names in [["two", "one"], ["other", "two"]] {
            let places = rows.places(names);
            assert!(why(&places).contains("and it was made for `"), "{} {places:?}", rows.row[0]);
        }
    }
}

#[test]
fn a_row_is_told_by_its_first_element() {
    for rows in [
        rows(CPP, ["  {\"#\",", "  },"], "    \"x#\","),
        rows(CPP, ["  {\n    \"#\",", "  },"], "    \"x#\","),
        rows(CPP, ["  T{\n    \"#\",", "  },"], "    \"x#\","),
        rows(CPP, ["  {\n    E::#,", "  },"], "    #,"),
        rows(["void f() {", "}"], ["  a.put({\n    \"#\",", "  });"], "    \"x#\","),
        rows(["void f() {", "}"], ["  a.put(\n    \"#\",", "    0);"], "    \"x#\","),
        rows(PYTHON, ["  [\n    \"#\",", "  ],"], "    \"x#\","),
        rows(PYTHON, ["  (\"#\",", "  ),"], "    \"x#\","),
        rows(PYTHON, ["  (\n    \"#\",", "  ),"], "    \"x#\","),
        rows(PYTHON, ["  (\n    E.#,", "  ),"], "    #,"),
        rows(PYTHON, ["  {\n    \"kind\": \"#\",", "  },"], "    \"x#\": 1,"),
        rows(PYTHON, ["  put(\n    \"#\",", "  ),"], "    \"x#\","),
        rows(JSON, ["  {\n    \"kind\": \"#\",", "    \"z\": 0},"], "    \"x#\": 1,"),
        rows(JSON, ["  [\n    \"#\",", "    \"z\"],"], "    \"x#\","),
    ] {
        let own = rows.row[0];
        assert_eq!(classes(&rows.places(["one", "two"])), ["exact"], "{own}");
        let places = rows.places(["two", "one"]);
        assert!(why(&places).contains("which is at line"), "{own} {places:?}");
        // It may be written anew, which is shown.
        let places = rows.places(["other", "two"]);
        let placed = places[0].as_ref().expect("placed");
        assert!(placed.nearby.is_some(), "{own} {places:?}");
    }
}
