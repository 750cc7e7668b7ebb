"""Recipes: every figure of the app from settings alone, as JSON that people can read and edit."""
