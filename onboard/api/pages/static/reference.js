// The API reference: Swagger UI on our own OpenAPI document. Nothing is loaded from, or sent to, anywhere else.
"use strict";
(() => {
  const place = document.getElementById("reference");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();
  SwaggerUIBundle({
    domNode: place,
    url: place.dataset.description,
    validatorUrl: null,
    deepLinking: true,
    docExpansion: "none",
    defaultModelsExpandDepth: -1, // a schema is shown where it is used
    defaultModelExpandDepth: 2,
    displayRequestDuration: true,
    filter: true,
    requestSnippetsEnabled: false,
    persistAuthorization: false, // a token is not kept in the browser
  });
})();
