// Nothing leaves this origin: no validator badge, no remote configuration.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#viewer",
  deepLinking: true,
  validatorUrl: null,
  queryConfigEnabled: false,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
});
