//! docs/configuration.md, written from the table of keys so that it can't go stale.

use std::fmt::Write;

use super::keys::{KEYS, Key};
use super::scrape::SCRAPE_KEYS;
use crate::scrape::ScrapeJob;

const INTRODUCTION: &str = "# Configuration

<!-- Written by `hotspan config docs`: change crates/hotspan-server/src/config, then
     `cargo run -p hotspan -- config docs > docs/configuration.md`. -->

Hotspan runs without any configuration. What is to be different is said in a TOML file, in environment variables or in
flags; one rule decides between them:

> default < file < environment variable < flag

- The file is the one named by `--config FILE`, else by `HOTSPAN_CONFIG`, else `hotspan.toml` in the working folder if
  there is one.
- The variable of a key is its name in capitals, with `HOTSPAN_` in front and `_` for `.`. An empty variable counts as
  not set.
- `hotspan config show` prints every value in force and where it came from; `hotspan config check FILE` points at what is
  wrong in a file by line and column, and exits with 1.

```toml
# hotspan.toml
store = \"/var/lib/hotspan\"
http = \"0.0.0.0:4040\"
tempo = \"off\"

[retention]
samples = \"3d\"

[limits]
max_bytes = \"32MiB\"
max_labels = 64
```

## Values

| type | in a file | in a variable or flag |
|---|---|---|
| address | `\"127.0.0.1:4040\"`, `\":4040\"` (every interface), port 0 for a free one, `\"off\"` | the same without quotes |
| duration | `\"250ms\"`, `\"15m\"`, `\"1h30m\"`, `\"14d\"`: units ns, us, ms, s, m, h, d, w | the same without quotes |
| size | `\"64MiB\"`, `\"10MB\"`, or a number of bytes: units B, kB, KiB, MB, MiB, GB, GiB, TB, TiB | the same without quotes |
| integer | `128` | `128` |
| boolean | `true`, `false` | `true`, `false` |
| folder | `\"/var/lib/hotspan\"` | the same without quotes |
| folder or off | `\"/src/shop\"`, `\"off\"` | the same without quotes |
| log level | `\"off\"`, `\"error\"`, `\"warn\"`, `\"info\"`, `\"debug\"`, `\"trace\"`, or by module: `\"info,hotspan_lake=debug\"` | the same without quotes |
| log format | `\"auto\"`, `\"text\"`, `\"json\"` | the same without quotes |
";

/// The documentation of every key.
pub fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut section = None;
    for (index, key) in KEYS.iter().enumerate() {
        if index == 0 || key.section() != section {
            section = key.section();
            let title = section.map_or_else(|| "At the top of the file".to_owned(), |name| format!("`[{name}]`"));
            // Writing into a String can't fail.
            let _ = write!(
                text,
                "\n## {title}\n\n| key | type | default | variable, flag | for |\n|---|---|---|---|---|\n"
            );
        }
        text.push_str(&row(key));
    }
    text.push_str(SCRAPE);
    for key in SCRAPE_KEYS {
        let default = match key.value(&ScrapeJob::default()).toml() {
            empty if empty == "\"\"" || empty == "[]" => "none".to_owned(),
            value => format!("`{value}`"),
        };
        let _ = writeln!(text, "| `{}` | {default} | {} |", key.name, key.doc);
    }
    text
}

const SCRAPE: &str = "
## `[[scrape]]`

Services that offer their profiles over HTTP, as Go's `net/http/pprof` does, are asked for them. Each `[[scrape]]` is one
service; it can only be said in a file. `/api/v1/targets` shows how it goes.

```toml
[[scrape]]
service = \"order-service\"
targets = [\"10.0.0.1:6060\", \"https://10.0.0.2:6060\"]
labels = { region = \"eu\" }
```

| key | default | for |
|---|---|---|
";

fn row(key: &Key) -> String {
    let name = key.name.rsplit('.').next().unwrap_or(key.name);
    let flag = key.flag.map(|flag| format!(", `--{flag}`")).unwrap_or_default();
    let bounds = match (key.at_least, key.at_most) {
        (Some(least), Some(most)) => format!(" ({least} to {most})"),
        (Some(least), None) => format!(" (at least {least})"),
        (None, Some(most)) => format!(" (at most {most})"),
        (None, None) => String::new(),
    };
    let default = if key.secret { "not set".to_owned() } else { format!("`{}`", key.default_text()) };
    format!("| `{name}` | {} | {default} | `{}`{flag} | {}{bounds} |\n", key.kind().name(), key.variable(), key.doc)
}
