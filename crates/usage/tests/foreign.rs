//! Parquet files of other tools: accepted where they keep to the format, and refused with
//! the reason where not.

use std::sync::Arc;

use miette::Diagnostic;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use reveille_usage::{Demand, InputError, Sample, Usage};

const ABOUT: &str = r#"{"version":1,"name":"app","origin":{"kind":"traced"},"span_ns":1000,
    "threads":2,"limits":null,"host_cpus":null,"began_unix_ns":null,"overhead":null,
    "warnings":[]}"#;

const SCHEMA: &str = "message m { optional binary kind (UTF8); optional int64 at_ns; \
    optional int32 thread; optional int64 cpu_ns; optional int64 done_ns; \
    optional int64 runtime_ns; optional int64 runnable; optional int64 nr_periods; \
    optional int64 nr_throttled; optional int64 throttled_ns; optional double note; }";

/// A demand, a sample ahead of it, and another demand ahead of both; empty is -1.
const ROWS: [(&str, [i64; 9]); 3] = [
    ("demand", [700, 1, 50, 800, -1, -1, -1, -1, -1]),
    ("sample", [500, -1, -1, -1, 40, -1, 5, 1, 30]),
    ("demand", [100, 0, 9, -1, -1, -1, -1, -1, -1]),
];

/// A file with this schema and these rows; columns that are not in `ROWS` are empty.
fn file(schema: &str, about: Option<&str>, rows: &[(&str, [i64; 9])]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let names: Vec<String> = schema.get_fields().iter().map(|f| f.name().to_owned()).collect();
    let about = about.map(|text| vec![KeyValue::new("reveille.usage".into(), text.to_owned())]);
    let properties = WriterProperties::builder().set_key_value_metadata(about).build();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema.clone(), Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let order = [
        "at_ns",
        "thread",
        "cpu_ns",
        "done_ns",
        "runtime_ns",
        "runnable",
        "nr_periods",
        "nr_throttled",
        "throttled_ns",
    ];
    for (name, field) in names.iter().zip(schema.get_fields()) {
        let mut column = group.next_column().unwrap().unwrap();
        let number = order.iter().position(|known| known == name);
        let cell = |row: &(&str, [i64; 9])| number.map_or(-1, |n| row.1[n]);
        let present: Vec<i16> = rows.iter().map(|row| i16::from(cell(row) != -1)).collect();
        let cells = rows.iter().map(cell).filter(|cell| *cell != -1);
        if name == "kind" {
            let kinds =
                rows.iter().filter(|row| !row.0.is_empty()).map(|row| ByteArray::from(row.0));
            let present: Vec<i16> = rows.iter().map(|row| i16::from(!row.0.is_empty())).collect();
            let kinds: Vec<ByteArray> = kinds.collect();
            column.typed::<ByteArrayType>().write_batch(&kinds, Some(&present), None).unwrap();
        } else {
            match field.get_physical_type() {
                parquet::basic::Type::INT32 => {
                    let cells: Vec<i32> = cells.map(|cell| cell as i32).collect();
                    column.typed::<Int32Type>().write_batch(&cells, Some(&present), None)
                }
                parquet::basic::Type::DOUBLE => {
                    let cells: Vec<f64> = cells.map(|cell| cell as f64).collect();
                    column.typed::<DoubleType>().write_batch(&cells, Some(&present), None)
                }
                _ => {
                    let cells: Vec<i64> = cells.collect();
                    column.typed::<Int64Type>().write_batch(&cells, Some(&present), None)
                }
            }
            .unwrap();
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

fn read(bytes: Vec<u8>) -> Result<Usage, InputError> {
    Usage::from_parquet("a.parquet", bytes)
}

#[test]
fn order_null_and_narrow_columns_do_not_matter() {
    let usage = read(file(SCHEMA, Some(ABOUT), &ROWS)).unwrap();
    assert_eq!(
        usage.demands,
        [
            Demand { at_ns: 100, cpu_ns: 9, thread: 0, done_ns: None },
            Demand { at_ns: 700, cpu_ns: 50, thread: 1, done_ns: Some(800) },
        ]
    );
    let sample = Sample { at_ns: 500, runtime_ns: 40, nr_periods: 5, ..Sample::default() };
    assert_eq!(usage.samples, [Sample { nr_throttled: 1, throttled_ns: 30, ..sample }]);
}

#[test]
fn what_is_no_recording_is_refused() {
    let with = |from: &str, to: &str| {
        assert!(SCHEMA.contains(from) || ABOUT.contains(from), "{from}");
        file(&SCHEMA.replace(from, to), Some(&ABOUT.replace(from, to)), &ROWS)
    };
    let row = |kind: &'static str, at: usize, value: i64| {
        let mut rows = ROWS;
        rows[0].0 = kind;
        rows[0].1[at] = value;
        file(SCHEMA, Some(ABOUT), &rows)
    };
    for (bytes, words) in [
        (b"at_s,cpu_s\n".to_vec(), "is no Parquet file"),
        (b"PAR1".to_vec(), "is a Parquet file that is cut off"),
        (b"PAR1xxxx\xff\xff\xff\x7fPAR1".to_vec(), "cannot be read as Parquet"),
        (file(SCHEMA, None, &ROWS), "is no recording: its metadata have no `reveille.usage`"),
        (file(SCHEMA, Some("{"), &ROWS), "`reveille.usage` in its metadata cannot be read"),
        (with("\"version\":1", "\"version\":3"), "is of version 3 of the format"),
        (with("\"traced\"", "\"dreamt\""), "unknown variant `dreamt`"),
        (with("\"span_ns\":1000", "\"span_ns\":0"), "a length of 0 ns"),
        (with("\"threads\":2", "\"threads\":1"), "is of thread 1, but there are 1 threads"),
        (with("optional int64 cpu_ns;", ""), "has no column `cpu_ns`; it has kind, at_ns"),
        (with("int64 cpu_ns", "double cpu_ns"), "column `cpu_ns` is of type DOUBLE"),
        (with("int64 at_ns", "int64 at_ns (TIMESTAMP_MICROS)"), "column `at_ns` is of type"),
        (row("demand", 0, -7), "column `at_ns`: -7 is negative"),
        (row("demand", 0, i64::MAX), "after the end at 1000 ns"),
        (row("demand", 2, i64::MAX), "more than 31 days"),
        (row("demand", 2, -1), "row 1: a demand without `cpu_ns`"),
        (row("demand", 3, 600), "is completed before it arrives"),
        (row("job", 2, 50), "row 1: `kind` is `job`"),
        (row("", 2, 50), "row 1: `kind` is empty"),
    ] {
        let error = read(bytes).unwrap_err();
        assert!(error.to_string().starts_with("a.parquet: "), "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert!(error.help().is_some_and(|help| !help.to_string().is_empty()), "{words}");
    }
}
