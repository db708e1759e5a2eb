// Package csv writes a run as comma-separated values: one table of package rows, by RFC 4180, with a header and CR LF at the
// end of each line. Empty fields are values that a row has not. Lists are joined by "; ", counts are "reason=number".
package csv

import (
	"encoding/csv"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"netdelta/internal/gather"
	"netdelta/report/rows"
	"netdelta/report/ui"
	"netdelta/result"
)

// Write writes a table of a run, one of rows.Tables.
func Write(w io.Writer, run result.Run, trials result.Trials, table string) error {
	t, err := rows.Of(run, trials, table)
	if err != nil {
		return err
	}
	fields := columns(t.Row)
	out := csv.NewWriter(w)
	out.UseCRLF = true
	line := gather.Each(fields, header)
	if err := out.Write(line); err != nil {
		return err
	}
	for row := range t.All {
		value := reflect.ValueOf(row)
		for i, f := range fields {
			line[i] = text(value.FieldByIndex(f.Index))
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// columns are the fields of a row, with the fields of embedded structs in their place.
func columns(row reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(row), func(f reflect.StructField) bool { return f.Anonymous })
}

// header is a column's name, the one that it has in a Parquet file.
func header(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
	return name
}

// text is a value as a field holds it.
func text(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case []string:
		return harmless(strings.Join(x, "; "))
	case map[string]int64:
		parts := make([]string, 0, len(x))
		for _, key := range slices.Sorted(maps.Keys(x)) {
			parts = append(parts, key+"="+strconv.FormatInt(x[key], 10))
		}
		return harmless(strings.Join(parts, "; "))
	case string:
		return harmless(x)
	case bool:
		return strconv.FormatBool(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	panic("csv: a row has a " + v.Type().String()) // a mistake in package rows, which a test would have found
}

// harmless makes text from outside safe for a spreadsheet and a terminal: what begins like a formula, which a spreadsheet
// would carry out when it opens the file, gets an apostrophe before it (the four signs in their wide forms too, which some
// take for the same), and control characters are replaced. Numbers are not text and keep their sign.
func harmless(text string) string {
	text = ui.Clean(text)
	if first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, " ")); strings.ContainsRune("=+-@\uff1d\uff0b\uff0d\uff20", first) {
		return "'" + text
	}
	return text
}
