package output

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
)

// GroupColumns returns the columns of a table of groups. GroupCells has its rows.
func GroupColumns() []Column {
	return []Column{
		{Title: " "},
		{Title: "GROUP"},
		{Title: "STATE"},
		{Title: "HEALTH", Right: true},
		{Title: "RUN/SIZE", Right: true},
		{Title: "NOW", Cut: true},
		{Title: "FOR"},
	}
}

// GroupCells returns the cells of one group.
func GroupCells(name string, r story.Row, now time.Time) []string {
	return []string{r.Mark, name, r.State, r.Health, r.Run, r.Now, Age(now, r.Since)}
}
