// Package bootstrap joins the parts into a service, and is how other programs
// embed it. There are three doors:
//
//  1. The use cases alone, on ports of your own: buyfund.New and addpush.New.
//     They need nothing from here.
//  2. The whole service: Open gives the use cases and an http.Handler to mount
//     in your server. App.Start adds listeners of our own, if you want them,
//     and App.Close finishes what was taken.
//  3. Module, the same service inside your fx application.
//
// All doors, and the command bankingapi, share one wiring. None of them
// touches flags, the environment, signals, global loggers or registries.
//
// Everything that can be set is in Settings; start from DefaultSettings, or
// read a file, the environment and flags by Load. What only a host can give,
// like a logger or an open database, comes by Options.
package bootstrap
