//! Whether the template arguments of an instantiation fit its kernel: what
//! Metal's compiler checks when a JIT build hands it text.

/// Checks one instantiation, as MLX writes it, against the text it was added to.
///
/// # Errors
/// In plain words: the instantiation is not one, the kernel is not in the text,
/// or its parameters and the arguments do not go together.
pub fn fits(definition: &str, source: &str) -> Result<(), String> {
    let (kernel, arguments) =
        instantiated(definition).ok_or_else(|| format!("no instantiation: {definition}"))?;
    let parameters =
        parameters(source, kernel).ok_or_else(|| format!("the text has no kernel {kernel}"))?;
    let required = parameters.iter().filter(|parameter| !parameter.contains('=')).count();
    if arguments.len() < required || arguments.len() > parameters.len() {
        return Err(format!(
            "{kernel} takes {} template arguments, is given {}: {}",
            if required == parameters.len() {
                required.to_string()
            } else {
                format!("{required} to {}", parameters.len())
            },
            arguments.len(),
            arguments.join(", ")
        ));
    }
    for (parameter, argument) in parameters.iter().zip(&arguments) {
        let wants_a_type = parameter.starts_with("typename") || parameter.starts_with("class");
        if wants_a_type == is_a_value(argument) {
            return Err(format!("{kernel}: {argument} is given for {parameter}"));
        }
    }
    Ok(())
}

/// The kernel and the arguments of `… decltype(kernel<a, b>) kernel<a, b>;`.
fn instantiated(definition: &str) -> Option<(&str, Vec<String>)> {
    let inside = definition.split_once("decltype(")?.1;
    let (kernel, rest) = inside.split_once('<')?;
    let end = closing(rest)?;
    Some((kernel.trim(), split(&rest[..end])))
}

/// The template parameters of a kernel, from the text that defines it.
fn parameters(source: &str, kernel: &str) -> Option<Vec<String>> {
    let mark = format!("void {kernel}(");
    let at = source.match_indices(&mark).map(|(at, _)| at).find(|at| {
        let before = source[..*at].trim_end();
        before.ends_with("[[kernel]]")
            || before.ends_with(")]]") && before.rfind("[[kernel").is_some_and(|k| at - k < 120)
    })?;
    let start = source[..at].rfind("template")?;
    let list = source[start..at].split_once('<')?.1;
    Some(split(&list[..closing(list)?]))
}

/// Where the angle bracket that is open before the text closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// A list's entries at the commas outside of brackets.
fn split(list: &str) -> Vec<String> {
    let (mut depth, mut entries) = (0, vec![String::new()]);
    for letter in list.chars() {
        match letter {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                entries.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = entries.last_mut() {
            last.push(letter);
        }
    }
    entries.iter().map(|entry| entry.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn is_a_value(argument: &str) -> bool {
    argument == "true"
        || argument == "false"
        || argument.trim_start_matches('-').chars().all(|letter| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        template <typename T, int group_size, const int bits, bool batched, bool scaled = false>
        [[kernel]] void affine_qmv(const device T* w [[buffer(0)]]) {}
        template <typename T> METAL_FUNC void helper(T a) {}";

    fn of(arguments: &str) -> String {
        format!(
            "\ntemplate [[host_name(\"a\")]] [[kernel]] decltype(affine_qmv<{arguments}>) \
             affine_qmv<{arguments}>;"
        )
    }

    #[test]
    fn defaults_may_be_left_out() {
        assert_eq!(fits(&of("float16_t, 64, 4, 0"), SOURCE), Ok(()));
        assert_eq!(fits(&of("float16_t, 64, 4, 0, 0"), SOURCE), Ok(()));
    }

    #[test]
    fn the_fault_of_the_pin_is_seen() {
        let why = fits(&of("float16_t, 64, 4, 0, 0, 4"), SOURCE).expect_err("six for five");
        assert!(why.contains("takes 4 to 5 template arguments, is given 6"), "{why}");
    }

    #[test]
    fn types_and_values_are_told_apart() {
        assert!(fits(&of("64, float16_t, 4, 0"), SOURCE).is_err());
        assert!(fits(&of("float16_t, 64"), SOURCE).is_err());
        assert!(fits(&of("float16_t, 64, 4, 0").replace("affine_qmv<", "other<"), SOURCE).is_err());
    }
}
