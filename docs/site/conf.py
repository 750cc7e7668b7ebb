"""What Sphinx reads; `build.py` makes the folder of pages that it reads it for."""

import re

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

import relcore

project = "Relscope"
release = relcore.__version__
language = "en"
html_title = "Relscope"
html_short_title = "Relscope"
author = "The Relscope maintainers"
copyright = "The Relscope maintainers, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"]
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# Pages that are reached by links alone; words of a type, such as "ids", that are also attributes.
suppress_warnings = ["toc.not_included", "ref.python"]

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "inherited-members": "AnyWidget,tuple,float,dict"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
python_use_unqualified_type_names = True
pygments_style = "sphinx"

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_extra_path = ["extra"]
html_favicon = html_logo = "_static/icon.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_sidebars = {page: [] for page in ("index", "README", "docs/site/faq")}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "Relscope"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


PUBLIC = re.compile(rf"(?<!`)`({'|'.join(relcore.__all__)})`(?!`)")


def setup(app):
    """Formulas as MathML, which browsers draw without a script; public names in docstrings as links."""

    def formula(writer, node):
        writer.body.append(tex2mathml(node.astext(), as_block=node.tagname == "math_block"))
        raise SkipNode

    def link(app, what, name, obj, options, lines):
        lines[:] = [PUBLIC.sub(r":py:obj:`~relcore.\1`", line) for line in lines]

    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("autodoc-process-docstring", link)
