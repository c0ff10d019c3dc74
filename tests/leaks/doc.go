// Package leaks finds values that must not be somewhere, in whatever encoding: secrets and private
// keys in logs, records, reports and files.
package leaks
