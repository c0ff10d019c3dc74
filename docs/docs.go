// Package docs holds the documents that programs show.
package docs

import _ "embed"

// Rules is rules.md: what Leasehold promises.
//
//go:embed rules.md
var Rules string
