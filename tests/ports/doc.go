// Package ports finds addresses that nobody listens on, for programs under test.
package ports
