//go:build nightly && !race

package web_test

import (
	"testing"

	"github.com/leasehold/leasehold/tests/browser"
)

// proves WEB-1: a page of 10,000 instances takes up changes, measured against one of 100
func TestManyCellsInABrowser(t *testing.T) {
	newExhibit(t).compare(t, browser.Open(t), 11, 100, 1_000, 10_000)
}
