// Package faultproxy stands between a client of an HTTP API and its server, and makes the network
// and the API fail as clouds do: requests that are refused, lost on the way there or on the way
// back, answers that are cut off or out of date. It is for tests of providers.
//
// A [Proxy] is an http.Handler before another one, so it works over real connections
// (net/http/httptest) and over [Pipes], which stand still in virtual time (testing/synctest).
package faultproxy
