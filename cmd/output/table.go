package output

import (
	"io"
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
	var titles []string
	for i, c := range t.Columns {
		if wide || !c.Wide {
			shown = append(shown, i)
			titles = append(titles, c.Title)
		}
	}
	rows := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		for _, c := range shown {
			rows[i] = append(rows[i], OneLine(row[c]))
		}
	}
	if !s.Terminal {
		return writeTabbed(s.W, titles, rows)
	}
	if s.Width > 0 && !wide {
		t.cut(s.Width-utf8.RuneCountInString(t.Indent), titles, shown, rows)
	}
	return t.writeAligned(s, titles, shown, rows)
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

// cut shortens the cells of the column that may be cut, as far as necessary.
func (t *Table) cut(width int, titles []string, shown []int, rows [][]string) {
	at, most, all := -1, 0, 0
	for i, c := range shown {
		widest := utf8.RuneCountInString(titles[i])
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(row[i]))
		}
		if t.Columns[c].Cut {
			at, most = i, widest
		}
		all += widest + len(gap)
	}
	excess := all - len(gap) - width
	if at < 0 || excess <= 0 {
		return
	}
	most = max(minOf, most-excess)
	for _, row := range rows {
		if cell := []rune(row[at]); len(cell) > most {
			row[at] = string(cell[:most-1]) + "…"
		}
	}
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
