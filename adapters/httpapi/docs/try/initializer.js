"use strict";

// Everything is found from where this file is, so that the page also works
// when the service is mounted under a prefix: BASE/docs/initializer.js.
const base = new URL("..", document.currentScript.src);

// The document says its server is "/"; try-outs go to where the page is from.
const serverOfThisPage = () => ({
  statePlugins: {
    spec: {
      wrapActions: {
        updateJsonSpec: (original) => (document) =>
          original({
            ...document,
            servers: [{ url: base.href.replace(/\/$/, ""), description: "The service this page comes from" }],
          }),
      },
    },
  },
});

SwaggerUIBundle({
  dom_id: "#swagger-ui",
  url: new URL("BankingApiV01/openapi.json", base).href,
  plugins: [serverOfThisPage],
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false, // the key is gone when the page is
  tryItOutEnabled: true,
  validatorUrl: null, // else the page asks validator.swagger.io
});
