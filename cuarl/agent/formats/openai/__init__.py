"""OpenAI computer use: output items of the Responses API."""
