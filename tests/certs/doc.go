// Package certs makes the certificate authorities that a coordinator needs, for tests of whole
// programs.
package certs
