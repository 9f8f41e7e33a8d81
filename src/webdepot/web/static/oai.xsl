<?xml version="1.0" encoding="UTF-8"?>
<!-- Answers of OAI-PMH for people: the browser makes a page of them. Machines do not look at it. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:oai="http://www.openarchives.org/OAI/2.0/"
    xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:marc="http://www.loc.gov/MARC21/slim"
    xmlns:mab="http://www.ddb.de/professionell/mabxml/mabxml-1.xsd" xmlns="http://www.w3.org/1999/xhtml"
    exclude-result-prefixes="oai oai_dc marc mab">
<xsl:output method="html" encoding="UTF-8" doctype-system="about:legacy-compat"/>

<xsl:template match="/oai:OAI-PMH">
<html lang="en">
<head>
  <meta charset="utf-8"/>
  <meta name="viewport" content="width=device-width, initial-scale=1"/>
  <title>OAI-PMH: <xsl:value-of select="oai:request/@verb"/></title>
  <link rel="stylesheet" href="/-/static/oai.css"/>
</head>
<body>
<header><h1>OAI-PMH 2.0</h1>
<p>An answer for machines, shown for people. <a href="/">To the archive</a></p>
<nav aria-label="Verbs"><ul>
  <li><a href="/oai?verb=Identify">Identify</a></li>
  <li><a href="/oai?verb=ListSets">ListSets</a></li>
  <li><a href="/oai?verb=ListMetadataFormats">ListMetadataFormats</a></li>
  <li><a href="/oai?verb=ListIdentifiers&amp;metadataPrefix=oai_dc">ListIdentifiers</a></li>
  <li><a href="/oai?verb=ListRecords&amp;metadataPrefix=oai_dc">ListRecords</a></li>
</ul></nav></header>
<main>
  <dl>
    <dt>Answered</dt><dd><xsl:value-of select="oai:responseDate"/></dd>
    <dt>Request</dt><dd><xsl:value-of select="oai:request"/><xsl:for-each select="oai:request/@*"><xsl:text> </xsl:text><xsl:value-of select="name()"/>=<xsl:value-of select="."/></xsl:for-each></dd>
  </dl>
  <xsl:apply-templates select="oai:error | oai:Identify | oai:ListSets | oai:ListMetadataFormats | oai:ListIdentifiers | oai:ListRecords | oai:GetRecord"/>
</main>
</body>
</html>
</xsl:template>

<xsl:template match="oai:error"><p class="error"><strong><xsl:value-of select="@code"/></strong>: <xsl:value-of select="."/></p></xsl:template>

<xsl:template match="oai:Identify"><h2>Identify</h2><dl><xsl:for-each select="*[not(self::oai:description)]"><dt><xsl:value-of select="local-name()"/></dt><dd><xsl:value-of select="."/></dd></xsl:for-each></dl></xsl:template>

<xsl:template match="oai:ListSets"><h2>Sets</h2><table><thead><tr><th scope="col">Set</th><th scope="col">Name</th><th scope="col">Records</th></tr></thead><tbody>
  <xsl:for-each select="oai:set"><tr><td><xsl:value-of select="oai:setSpec"/></td><td><xsl:value-of select="oai:setName"/></td><td><a href="/oai?verb=ListRecords&amp;metadataPrefix=oai_dc&amp;set={oai:setSpec}">oai_dc</a></td></tr></xsl:for-each>
</tbody></table></xsl:template>

<xsl:template match="oai:ListMetadataFormats"><xsl:variable name="identifier" select="/oai:OAI-PMH/oai:request/@identifier"/><h2>Formats</h2><table><thead><tr><th scope="col">Prefix</th><th scope="col">Namespace</th></tr></thead><tbody>
  <xsl:for-each select="oai:metadataFormat"><tr><td><xsl:choose>
    <xsl:when test="$identifier"><a href="/oai?verb=GetRecord&amp;metadataPrefix={oai:metadataPrefix}&amp;identifier={$identifier}"><xsl:value-of select="oai:metadataPrefix"/></a></xsl:when>
    <xsl:otherwise><a href="/oai?verb=ListRecords&amp;metadataPrefix={oai:metadataPrefix}"><xsl:value-of select="oai:metadataPrefix"/></a></xsl:otherwise>
  </xsl:choose></td><td><xsl:value-of select="oai:metadataNamespace"/></td></tr></xsl:for-each>
</tbody></table></xsl:template>

<xsl:template match="oai:ListIdentifiers"><h2>Identifiers</h2><xsl:call-template name="onward"/><ul><xsl:for-each select="oai:header"><li><xsl:call-template name="header"/></li></xsl:for-each></ul><xsl:call-template name="onward"/></xsl:template>

<xsl:template match="oai:ListRecords | oai:GetRecord"><h2>Records</h2><xsl:call-template name="onward"/>
  <xsl:for-each select="oai:record"><section><h3><xsl:for-each select="oai:header"><xsl:call-template name="header"/></xsl:for-each></h3><xsl:if test="not(oai:header/@status)"><p class="formats">The same record as <xsl:variable name="identifier" select="oai:header/oai:identifier"/>
    <a href="/oai?verb=GetRecord&amp;metadataPrefix=oai_dc&amp;identifier={$identifier}">oai_dc</a><xsl:text> </xsl:text>
    <a href="/oai?verb=GetRecord&amp;metadataPrefix=marc21&amp;identifier={$identifier}">marc21</a><xsl:text> </xsl:text>
    <a href="/oai?verb=GetRecord&amp;metadataPrefix=epicur&amp;identifier={$identifier}">epicur</a><xsl:text> </xsl:text>
    <a href="/oai?verb=ListMetadataFormats&amp;identifier={$identifier}">all formats</a></p></xsl:if><xsl:apply-templates select="oai:metadata/*" mode="tree"/></section></xsl:for-each>
  <xsl:call-template name="onward"/></xsl:template>

<xsl:template name="header">
  <a href="/oai?verb=GetRecord&amp;metadataPrefix=oai_dc&amp;identifier={oai:identifier}"><xsl:value-of select="oai:identifier"/></a>
  <small><xsl:text> </xsl:text><xsl:value-of select="oai:datestamp"/><xsl:if test="@status = 'deleted'"> · deleted</xsl:if></small>
</xsl:template>

<xsl:template name="onward"><xsl:if test="oai:resumptionToken != ''"><p><a href="/oai?verb={local-name()}&amp;resumptionToken={oai:resumptionToken}">Next page</a> (<xsl:value-of select="oai:resumptionToken/@cursor"/> before this one, <xsl:value-of select="oai:resumptionToken/@completeListSize"/> in all)</p></xsl:if></xsl:template>

<!-- Any metadata: leaves as name and value, others as nested lists. What librarians read every day has a form of its own. -->
<xsl:template match="*" mode="tree">
  <ul><li><code><xsl:value-of select="local-name()"/></code><xsl:call-template name="attributes"/>
  <xsl:choose>
    <xsl:when test="*"><xsl:apply-templates select="*" mode="tree"/></xsl:when>
    <xsl:otherwise><xsl:text> </xsl:text><xsl:call-template name="value"/></xsl:otherwise>
  </xsl:choose></li></ul>
</xsl:template>

<xsl:template match="oai_dc:dc" mode="tree"><dl><xsl:for-each select="*"><dt><xsl:value-of select="local-name()"/></dt><dd><xsl:call-template name="value"/></dd></xsl:for-each></dl></xsl:template>

<xsl:template match="marc:record | mab:datensatz" mode="tree"><table class="fields"><tbody>
  <xsl:for-each select="marc:leader | marc:controlfield | marc:datafield | mab:feld">
    <tr><th scope="row"><xsl:choose><xsl:when test="self::marc:leader">LDR</xsl:when><xsl:otherwise><xsl:value-of select="@tag | @nr"/></xsl:otherwise></xsl:choose></th>
    <td><code><xsl:value-of select="translate(concat(@ind1, @ind2, @ind), ' ', '_')"/></code></td>
    <td><xsl:choose>
      <xsl:when test="marc:subfield | mab:uf"><xsl:for-each select="marc:subfield | mab:uf"><small>$<xsl:value-of select="@code"/></small><xsl:text> </xsl:text><xsl:call-template name="value"/><xsl:text> </xsl:text></xsl:for-each></xsl:when>
      <xsl:otherwise><xsl:call-template name="value"/></xsl:otherwise>
    </xsl:choose></td></tr>
  </xsl:for-each>
</tbody></table></xsl:template>

<xsl:template name="value"><xsl:choose>
  <xsl:when test="starts-with(., 'http://') or starts-with(., 'https://')"><a href="{.}" rel="nofollow noreferrer"><xsl:value-of select="."/></a></xsl:when>
  <xsl:otherwise><xsl:value-of select="."/></xsl:otherwise>
</xsl:choose></xsl:template>
<xsl:template name="attributes"><xsl:for-each select="@*[namespace-uri() = '']"><small><xsl:text> </xsl:text><xsl:value-of select="name()"/>=<xsl:value-of select="."/></small></xsl:for-each></xsl:template>
</xsl:stylesheet>
