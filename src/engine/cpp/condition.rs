//! The value of an `#if` line, after its macros were expanded.

/// Why a condition has no value: it holds something that is no integer
/// expression (a cast, a character, `__has_include`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAnInteger;

/// The value of an integer expression, given as words. Names that are no
/// macros are 0, as in C++.
pub(super) fn value(words: &[&str]) -> Result<i64, NotAnInteger> {
    let mut reader = Reader { words, at: 0, depth: 0 };
    let value = reader.ternary()?;
    if reader.at == words.len() { Ok(value) } else { Err(NotAnInteger) }
}

/// Operators of two operands, the loosest binding first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Deeper brackets than anybody writes; the reader recurses.
const DEPTH: usize = 64;

struct Reader<'w> {
    words: &'w [&'w str],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).copied()
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.at += usize::from(found);
        found
    }

    fn ternary(&mut self) -> Result<i64, NotAnInteger> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(NotAnInteger);
        }
        let test = self.binary(0)?;
        let value = if self.take("?") {
            let yes = self.ternary()?;
            if !self.take(":") {
                return Err(NotAnInteger);
            }
            let no = self.ternary()?;
            if test == 0 { no } else { yes }
        } else {
            test
        };
        self.depth -= 1;
        Ok(value)
    }

    fn binary(&mut self, level: usize) -> Result<i64, NotAnInteger> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.peek().and_then(|w| operators.iter().find(|o| **o == w)) {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = apply(left, operator, right).ok_or(NotAnInteger)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<i64, NotAnInteger> {
        let mut signs = Vec::new();
        while let Some(sign @ ("!" | "-" | "+" | "~")) = self.peek() {
            signs.push(sign.as_bytes()[0]);
            self.at += 1;
        }
        let mut value = self.primary()?;
        for sign in signs.into_iter().rev() {
            value = match sign {
                b'!' => i64::from(value == 0),
                b'-' => value.wrapping_neg(),
                b'~' => !value,
                _ => value,
            };
        }
        Ok(value)
    }

    fn primary(&mut self) -> Result<i64, NotAnInteger> {
        if self.take("(") {
            let value = self.ternary()?;
            return if self.take(")") { Ok(value) } else { Err(NotAnInteger) };
        }
        let word = self.peek().ok_or(NotAnInteger)?;
        let value = if word == "true" {
            1
        } else if word.starts_with(|c: char| c.is_ascii_digit()) {
            integer(word).ok_or(NotAnInteger)?
        } else if word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            0
        } else {
            return Err(NotAnInteger);
        };
        self.at += 1;
        Ok(value)
    }
}

fn integer(word: &str) -> Option<i64> {
    let digits = word.replace('\'', "");
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    i64::from_str_radix(digits, radix).ok()
}

fn apply(a: i64, operator: &str, b: i64) -> Option<i64> {
    let shift = u32::try_from(b).ok();
    Some(match operator {
        "||" => i64::from(a != 0 || b != 0),
        "&&" => i64::from(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "<" => i64::from(a < b),
        "<=" => i64::from(a <= b),
        ">" => i64::from(a > b),
        ">=" => i64::from(a >= b),
        "<<" => a.checked_shl(shift?)?,
        ">>" => a.checked_shr(shift?)?,
        "+" => a.checked_add(b)?,
        "-" => a.checked_sub(b)?,
        "*" => a.checked_mul(b)?,
        "/" => a.checked_div(b)?,
        _ => a.checked_rem(b)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<i64, NotAnInteger> {
        value(&text.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn expressions_have_the_value_c_gives_them() {
        assert_eq!(of("1 + 2 * 3 == 7 && ! 0"), Ok(1));
        assert_eq!(of("( 1 << 4 | 0x0f ) - 010"), Ok(23));
        assert_eq!(of("310 >= 320 ? 1 : unknown"), Ok(0));
        assert_eq!(of("10 - 4 - 3"), Ok(3));
        assert_eq!(of("- - 2 > 1 ||"), Err(NotAnInteger));
    }

    #[test]
    fn what_is_no_integer_expression_has_no_value() {
        for text in ["", "1 / 0", "1 %", "( 1", "'a' == 97", "1 << 70", "a ( b )"] {
            assert_eq!(of(text), Err(NotAnInteger), "{text}");
        }
        assert_eq!(of(&"( ".repeat(10_000)), Err(NotAnInteger));
    }
}
