//! Values over time, heatmaps, and the exemplars of both. Times are milliseconds since 1970.

use super::labels::LabelPair;
use super::schema::messages;
use super::stacktraces::StackTraceSelector;

messages! {
    SelectSeriesRequest {
        1 profile_type_id: type_id,
        2 label_selector: text,
        3 start: int64,
        4 end: int64,
        5 group_by: texts,
        6 step: double,
        7 aggregation: maybe_aggregation,
        8 stack_trace_selector: one StackTraceSelector,
        9 limit: maybe_int64,
        10 exemplar_type: exemplar_type,
    }

    SelectSeriesResponse { 1 series: many SeriesMessage }

    SeriesMessage { 1 labels: many LabelPair, 2 points: many PointMessage }

    PointMessage { 1 value: double, 2 timestamp: int64, 4 exemplars: any ExemplarMessage }

    /// A profile or span that contributed to a value.
    ExemplarMessage {
        1 timestamp: int64,
        2 profile_id: text,
        3 span_id: maybe_text,
        4 value: int64,
        5 labels: many LabelPair,
        6 trace_id: maybe_text,
    }

    HeatmapRequest {
        1 profile_type_id: type_id,
        2 label_selector: text,
        3 start: int64,
        4 end: int64,
        5 step: double,
        6 group_by: texts,
        7 query_type: heatmap_type,
        8 exemplar_type: exemplar_type,
        9 limit: maybe_int64,
    }

    HeatmapResponse { 1 series: many HeatmapSeries }

    HeatmapSeries { 1 labels: many LabelPair, 2 slots: many HeatmapSlot }

    HeatmapSlot { 1 timestamp: int64, 2 y_min: doubles, 3 counts: int32s, 4 exemplars: any ExemplarMessage }
}
