// Package bootstrap joins the parts into a service. Other programs embed the service with it,
// in one of three ways:
//
//  1. The use cases alone, on your own ports: buyfund.New and addpush.New. They need nothing
//     from this package.
//  2. The whole service: Open returns the use cases and an http.Handler that you mount in your
//     server. App.Start adds the listeners of the service if you want them. App.Close finishes
//     the running requests.
//  3. Module, the same service inside your fx application.
//
// All three ways, and the command bankingapi, share one wiring. None of them touches flags, the
// environment, signals, global loggers or registries.
//
// Settings contains everything that can be set. Start from DefaultSettings, or read a file, the
// environment and flags with Load. Options pass what only a host can give, such as a logger or
// an open database.
package bootstrap
