package output

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/leasehold/leasehold/coordinator/reason"
)

// Screen describes the output device, which decides how tables look.
type Screen struct {
	W        io.Writer
	Terminal bool // otherwise tab-separated lines
	Colour   bool
	Width    int // of the terminal, in characters; 0: unlimited
}

// Column is one column of a table.
type Column struct {
	Title string
	Right bool // align right on a terminal, for numbers
	Wide  bool // shown with -o wide only
	Cut   bool // shortened if a row would be wider than the terminal, unless with -o wide
	// Spare columns are left out if rows would still be wider than the terminal, those with the
	// highest number first, unless with -o wide; 0: never.
	Spare int
}

// Table is rows under columns. A row has one cell for each column, including wide columns.
type Table struct {
	Columns []Column
	Rows    [][]string
	Indent  string // prefix of each line on a terminal
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write writes the table, with or without its wide columns.
func (t *Table) Write(s Screen, wide bool) error {
	var shown []int
	for i, c := range t.Columns {
		if wide || !c.Wide {
			shown = append(shown, i)
		}
	}
	for {
		titles, rows := t.of(shown)
		if !s.Terminal {
			return writeTabbed(s.W, titles, rows)
		}
		if s.Width <= 0 || wide || t.cut(s.Width-utf8.RuneCountInString(t.Indent), titles, shown, rows) {
			return t.writeAligned(s, titles, shown, rows)
		}
		spare := slices.MaxFunc(shown, func(a, b int) int { return cmp.Compare(t.Columns[a].Spare, t.Columns[b].Spare) })
		if t.Columns[spare].Spare == 0 {
			return t.writeAligned(s, titles, shown, rows)
		}
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == spare })
	}
}

// of returns the titles and the cells of these columns.
func (t *Table) of(shown []int) (titles []string, rows [][]string) {
	for _, c := range shown {
		titles = append(titles, t.Columns[c].Title)
	}
	rows = make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		for _, c := range shown {
			rows[i] = append(rows[i], OneLine(row[c]))
		}
	}
	return titles, rows
}

func writeTabbed(w io.Writer, titles []string, rows [][]string) error {
	var b strings.Builder
	for _, row := range append([][]string{titles}, rows...) {
		b.WriteString(strings.Join(row, "\t"))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// The separator of columns, and the least width to which a cell is cut.
const (
	gap   = "  "
	minOf = 12
)

// cut shortens the cells of the columns that may be cut, as far as necessary, the last column
// first. It reports whether rows are no wider than the terminal then.
func (t *Table) cut(width int, titles []string, shown []int, rows [][]string) bool {
	widths, excess := make([]int, len(shown)), -len(gap)-width
	for i := range shown {
		widths[i] = utf8.RuneCountInString(titles[i])
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		excess += widths[i] + len(gap)
	}
	for i := len(shown) - 1; i >= 0 && excess > 0; i-- {
		most := max(minOf, utf8.RuneCountInString(titles[i]), widths[i]-excess)
		if !t.Columns[shown[i]].Cut || most >= widths[i] {
			continue
		}
		excess -= widths[i] - most
		for _, row := range rows {
			if cell := []rune(row[i]); len(cell) > most {
				row[i] = string(cell[:most-1]) + "…"
			}
		}
	}
	return excess <= 0
}

func (t *Table) writeAligned(s Screen, titles []string, shown []int, rows [][]string) error {
	tw := table.NewWriter()
	style := table.StyleDefault
	style.Box = table.BoxStyle{PaddingRight: gap}
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	tw.SetStyle(style)
	configs := make([]table.ColumnConfig, len(shown))
	for i, c := range shown {
		configs[i] = table.ColumnConfig{Number: i + 1}
		if t.Columns[c].Right {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	tw.SetColumnConfigs(configs)
	tw.AppendHeader(cells(titles))
	for _, row := range rows {
		tw.AppendRow(cells(row))
	}
	var b strings.Builder
	for i, line := range strings.Split(tw.Render(), "\n") {
		line = strings.TrimRight(t.Indent+line, " ")
		if i == 0 {
			line = s.Dim(line)
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	_, err := io.WriteString(s.W, b.String())
	return err
}

func cells(row []string) table.Row {
	r := make(table.Row, len(row))
	for i, c := range row {
		r[i] = c
	}
	return r
}

// OneLine makes a text safe for one cell of one row: it removes all control characters.
func OneLine(s string) string { return reason.OneLine(s) }
