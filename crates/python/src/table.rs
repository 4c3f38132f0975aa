//! Tables in Arrow's memory: any reader of the Arrow C stream takes them without a copy.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::{Map, Value};

/// Columns of equal length.
#[pyclass(frozen, module = "reveille")]
pub struct Table(RecordBatch);

impl Table {
    pub fn new(columns: Vec<(String, ArrayRef)>) -> Result<Table, ArrowError> {
        let field =
            |(name, array): &(String, ArrayRef)| Field::new(name, array.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<Field>>());
        let rows = columns.first().map_or(0, |(_, array)| array.len());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        Ok(Table(RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)?))
    }
}

#[pymethods]
impl Table {
    /// From a JSON array of objects: an object inside becomes columns `outer_inner`, an array its
    /// JSON text.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Table> {
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let rows: Vec<Map<String, Value>> =
            serde_json::from_str(text).map_err(|error| wrong(&error))?;
        let mut names: Vec<String> = Vec::new();
        let mut columns: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (i, row) in rows.iter().enumerate() {
            let mut cells = Vec::new();
            flatten("", row, &mut cells);
            for (name, value) in cells {
                if !columns.contains_key(&name) {
                    names.push(name.clone());
                }
                let column = columns.entry(name).or_default();
                column.resize(i, Value::Null);
                column.push(value.clone());
            }
        }
        let mut table = Vec::new();
        for name in names {
            let mut values = columns.remove(&name).unwrap_or_default();
            values.resize(rows.len(), Value::Null);
            table.push((name, array(&values)));
        }
        Table::new(table).map_err(|error| wrong(&error))
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<reveille.Table: {} rows x {} columns>", self.0.num_rows(), self.0.num_columns())
    }

    /// Of the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema_ref().as_ref());
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Of the Arrow PyCapsule interface. The schema is what it is: a reader casts.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

fn flatten(prefix: &str, row: &Map<String, Value>, cells: &mut Vec<(String, Value)>) {
    for (key, value) in row {
        let name = format!("{prefix}{key}");
        match value {
            Value::Object(inner) => flatten(&format!("{name}_"), inner, cells),
            Value::Array(_) => cells.push((name, Value::String(value.to_string()))),
            _ => cells.push((name, value.clone())),
        }
    }
}

/// The narrowest kind of column that holds all values; of nulls alone the null type.
fn array(values: &[Value]) -> ArrayRef {
    let all = |is: fn(&Value) -> bool| values.iter().all(|v| v.is_null() || is(v));
    if all(Value::is_null) {
        Arc::new(NullArray::new(values.len()))
    } else if all(Value::is_boolean) {
        Arc::new(values.iter().map(Value::as_bool).collect::<BooleanArray>())
    } else if all(Value::is_i64) {
        Arc::new(values.iter().map(Value::as_i64).collect::<Int64Array>())
    } else if all(Value::is_number) {
        Arc::new(values.iter().map(Value::as_f64).collect::<Float64Array>())
    } else {
        let text = |v: &Value| match v {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        Arc::new(values.iter().map(text).collect::<StringArray>())
    }
}
