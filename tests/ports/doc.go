// Package ports finds addresses on which nothing listens, for programs under test.
package ports
