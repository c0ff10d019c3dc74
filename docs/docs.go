// Package docs holds the documents that programs show.
package docs

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// Rules is rules.md: what Leasehold promises.
//
//go:embed rules.md
var Rules string

// Promise is a rule that Leasehold keeps, from rules.md.
type Promise struct {
	ID      string `json:"id"`
	Promise string `json:"promise"`
	Status  string `json:"status"` // kept, partly or later
}

var promiseRow = regexp.MustCompile(`(?m)^\| ([A-Z]+-\d+) \| (.+) \| (\S+) \|$`)

// Promises returns all rules, in the order of the document.
var Promises = sync.OnceValue(func() []Promise {
	var all []Promise
	for _, row := range promiseRow.FindAllStringSubmatch(Rules, -1) {
		all = append(all, Promise{ID: row[1], Promise: row[2], Status: row[3]})
	}
	return all
})

// PromiseOf returns the rule of an ID, in capitals or not; false: there is none.
func PromiseOf(id string) (Promise, bool) {
	id = strings.ToUpper(id)
	for _, p := range Promises() {
		if p.ID == id {
			return p, true
		}
	}
	return Promise{}, false
}
